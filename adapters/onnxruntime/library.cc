// What lib<library>_onnxruntime.so exports: RegisterCustomOps, which ONNX Runtime calls when a session's options
// register the library, what libpolyop_accelerator.so calls, and what the program `polyop` does. It does not link ONNX
// Runtime: the API comes from the caller.
#include "core/library.h"
#include "adapters/onnxruntime/accelerator.h"
#include "adapters/onnxruntime/node_kernel.h"
#include "adapters/onnxruntime/registration.h"

namespace polyop::onnxruntime {
namespace {

constexpr int kTable = -1;  // the accelerator's tables have opsets as numbers

std::vector<OpsOfDomain> AllOperators(const Host& host) {
  std::vector<OpsOfDomain> all;
  for (const std::string& domain : AllDomains()) all.push_back({domain, MakeCustomOps(domain, host)});
  return all;
}

}  // namespace
}  // namespace polyop::onnxruntime

extern "C" __attribute__((visibility("default"))) OrtStatus* RegisterCustomOps(OrtSessionOptions* options,
                                                                               const OrtApiBase* base) {
  using namespace polyop::onnxruntime;
  return Register(options, base, kTable, AllOperators);
}

extern "C" __attribute__((visibility("default"))) OrtStatus* polyop_register_accelerator(OrtSessionOptions* options,
                                                                                         const OrtApiBase* base) {
  return polyop::onnxruntime::RegisterAccelerator(options, base);
}

extern "C" __attribute__((visibility("default"))) void polyop_use_reference_kernels(int use) {
  polyop::onnxruntime::UseReferenceKernels(use != 0);
}
