// SPDX-License-Identifier: Apache-2.0
// The exported functions of lib<library>_onnxruntime.so: RegisterCustomOps, which ONNX Runtime calls when a session's
// options register the library, and those that libpolyop_accelerator.so and the CLI call. The library does not link
// ONNX Runtime: the caller passes the API.
#include "core/library.h"
#include "adapters/onnxruntime/accelerator.h"
#include "adapters/onnxruntime/node_kernel.h"
#include "adapters/onnxruntime/registration.h"
#include "platform/exported.h"

namespace polyop::onnxruntime {
namespace {

std::vector<OpsOfDomain> AllOperators(const Host& host) {
  std::vector<OpsOfDomain> all;
  for (const std::string& domain : AllDomains()) all.push_back({domain, MakeCustomOps(domain, host)});
  return all;
}

}  // namespace
}  // namespace polyop::onnxruntime

extern "C" POLYOP_EXPORTED OrtStatus* RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  using namespace polyop::onnxruntime;
  return Register(options, base, Registration::kOperators, 0, AllOperators);
}

extern "C" POLYOP_EXPORTED OrtStatus* polyop_register_accelerator(OrtSessionOptions* options, const OrtApiBase* base) {
  return polyop::onnxruntime::RegisterAccelerator(options, base);
}

extern "C" POLYOP_EXPORTED const char* polyop_accelerator_version() { return POLYOP_VERSION; }

extern "C" void polyop_use_reference_kernels(int use) {
  polyop::onnxruntime::UseReferenceKernels(use < 0 ? std::nullopt : std::optional(use != 0));
}
