// libpolyop_onnxruntime.so: its only export is RegisterCustomOps, which ONNX Runtime calls when a session's
// options register the library. It does not link ONNX Runtime: the API comes from the caller.
#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>

#include "adapters/onnxruntime/custom_op.h"

namespace polyop::onnxruntime {
namespace {

// Domains and their operators live as long as the library: sessions keep pointers to them.
struct Domain {
  OrtCustomOpDomain* handle = nullptr;
  std::vector<std::unique_ptr<CustomOp>> ops;
};

// ONNX Runtime 1.N has the APIs up to N. Asking for a newer one is answered, but prints a complaint.
uint32_t NewestApi(const OrtApiBase* base) {
  unsigned major = 0, minor = 0;
  if (std::sscanf(base->GetVersionString(), "%u.%u", &major, &minor) != 2 || major != 1) return ORT_API_VERSION;
  return std::min<uint32_t>(ORT_API_VERSION, minor);
}

Status Negotiate(const OrtApiBase* base) {
  for (uint32_t version = NewestApi(base); version >= kOldestApi; --version) {
    if (const OrtApi* api = base->GetApi(version)) {
      TheHost() = {api, version};
      return Status::Ok();
    }
  }
  // The oldest function of all makes the error: its place has never changed.
  TheHost() = {base->GetApi(1), 1};
  return Unsupported("polyop needs ONNX Runtime 1.", kOldestApi, " or newer, this is ", base->GetVersionString());
}

Status MakeDomains(std::map<std::string, Domain>* domains) {
  for (const std::string& name : AllDomains()) {
    Domain& domain = (*domains)[name];
    domain.ops = MakeCustomOps(name, TheHost().version);
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().CreateCustomOpDomain(name.c_str(), &domain.handle)));
    for (const auto& op : domain.ops) {
      POLYOP_RETURN_IF_ERROR(FromOrt(Api().CustomOpDomain_Add(domain.handle, op.get())));
    }
  }
  return Status::Ok();
}

Status RegisterAll(OrtSessionOptions* options, const OrtApiBase* base) {
  static std::mutex mutex;
  static auto* domains = new std::map<std::string, Domain>();
  const std::lock_guard lock(mutex);
  if (domains->empty()) {
    POLYOP_RETURN_IF_ERROR(Negotiate(base));
    POLYOP_RETURN_IF_ERROR(MakeDomains(domains));
  }
  for (const auto& [name, domain] : *domains) {
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().AddCustomOpDomain(options, domain.handle)));
  }
  return Status::Ok();
}

}  // namespace
}  // namespace polyop::onnxruntime

extern "C" __attribute__((visibility("default"))) OrtStatus* RegisterCustomOps(OrtSessionOptions* options,
                                                                               const OrtApiBase* base) {
  try {
    return polyop::onnxruntime::ToOrt(polyop::onnxruntime::RegisterAll(options, base));
  } catch (const std::exception& e) {
    return base->GetApi(1)->CreateStatus(ORT_FAIL, e.what());
  }
}
