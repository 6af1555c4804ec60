// SPDX-License-Identifier: Apache-2.0
// The exported functions of lib<library>_onnxruntime.so: RegisterCustomOps, which ONNX Runtime calls when a session's
// options register the library; CreateEpFactories and ReleaseEpFactory, which it calls when the library is registered
// as an execution provider; and those that libpolyop_accelerator.so and the CLI call. The library does not link ONNX
// Runtime: the caller passes the API.
#include "core/library.h"
#include "adapters/onnxruntime/accelerator.h"
#include "adapters/onnxruntime/execution_provider.h"
#include "adapters/onnxruntime/registration.h"
#include "adapters/onnxruntime/session_call.h"
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

#if ORT_API_VERSION >= 24
extern "C" POLYOP_EXPORTED OrtStatus* CreateEpFactories(const char* registration, const OrtApiBase* base,
                                                        const OrtLogger*, OrtEpFactory** factories,
                                                        size_t max_factories, size_t* num_factories) {
  using namespace polyop::onnxruntime;
  *num_factories = 0;
  if (max_factories == 0) return base->GetApi(1)->CreateStatus(ORT_INVALID_ARGUMENT, "expected room for a factory");
  OrtStatus* const status = CreateFactory(registration, base, AllOperators, factories);
  *num_factories = status == nullptr ? 1 : 0;
  return status;
}

extern "C" POLYOP_EXPORTED OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  polyop::onnxruntime::ReleaseFactory(factory);
  return nullptr;
}
#endif

extern "C" POLYOP_EXPORTED OrtStatus* polyop_register_accelerator(OrtSessionOptions* options, const OrtApiBase* base) {
  return polyop::onnxruntime::RegisterAccelerator(options, base);
}

extern "C" POLYOP_EXPORTED const char* polyop_accelerator_version() { return POLYOP_VERSION; }

extern "C" void polyop_use_reference_kernels(int use) {
  polyop::onnxruntime::UseReferenceKernels(use < 0 ? std::nullopt : std::optional(use != 0));
}
