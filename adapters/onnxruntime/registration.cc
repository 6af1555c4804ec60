#include "adapters/onnxruntime/registration.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <mutex>

#include "core/library.h"
#include "core/unload.h"

// libstdc++'s own: frees the 72 kB that it keeps for exceptions when memory has run out.
namespace __gnu_cxx {
__attribute__((weak)) void __freeres() noexcept;
}

namespace polyop::onnxruntime {
namespace {

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};

struct ReleaseDomain {
  const OrtApi* api = nullptr;
  void operator()(OrtCustomOpDomain* domain) const { api->ReleaseCustomOpDomain(domain); }
};

using DomainHandle = std::unique_ptr<OrtCustomOpDomain, ReleaseDomain>;

// A domain and what is in it; the domain goes first. ONNX's default domain has no handle here.
struct Domain {
  std::string name;
  CustomOps ops;
  DomainHandle handle;
};

// What one ONNX Runtime got: its sessions keep pointers to all of it.
struct Registered {
  // The runtime itself, whose code releases the domains; null where it is no shared library.
  std::unique_ptr<void, CloseLibrary> runtime;
  Host host;
  std::vector<Domain> domains;
};
struct Tables {
  std::map<std::pair<const OrtApiBase*, int>, std::unique_ptr<Registered>> of_runtime;
  // ONNX Runtime takes a domain once for a session, and several tables may have operators for the default one: so each
  // options have a default domain of their own, whose number stands in their configuration.
  std::map<const OrtApiBase*, std::vector<DomainHandle>> default_domains;
};
constexpr const char* kDefaultDomainKey = "polyop.default_domain";
// The same configuration says which library the operators of a domain are from: "polyop.domain.mmcv" is "polyop".
constexpr const char* kOwnerKey = "polyop.domain.";

Tables* tables = nullptr;  // core/unload.h says how long they live

// Whether the C++ library is a part of this one, so that nobody else uses it.
bool HasOwnRuntime() {
  Dl_info here, there;
  return __gnu_cxx::__freeres != nullptr && dladdr(reinterpret_cast<const void*>(&tables), &here) != 0 &&
         dladdr(reinterpret_cast<const void*>(&__gnu_cxx::__freeres), &there) != 0 && here.dli_fbase == there.dli_fbase;
}

__attribute__((destructor)) void FreeTables() {
  if (ProcessEnds()) return;
  delete tables;
  if (HasOwnRuntime()) __gnu_cxx::__freeres();
}

// The N of ONNX Runtime 1.N; of others the newest that is known.
uint32_t ReleaseOf(const OrtApiBase* base) {
  unsigned major = 0, minor = 0;
  if (std::sscanf(base->GetVersionString(), "%u.%u", &major, &minor) != 2 || major != 1) return ORT_API_VERSION;
  return minor;
}

// ONNX Runtime 1.N has the APIs up to N. Asking for a newer one is answered, but prints a complaint.
Status Negotiate(const OrtApiBase* base, Host* host) {
  const uint32_t release = ReleaseOf(base);
  for (uint32_t version = std::min<uint32_t>(ORT_API_VERSION, release); version >= kOldestApi; --version) {
    if (const OrtApi* api = base->GetApi(version)) {
      *host = {api, version, release};
      return Status::Ok();
    }
  }
  return Unsupported("polyop needs ONNX Runtime 1.", kOldestApi, " or newer, this is ", base->GetVersionString());
}

// While it is held, the shared library that `base` lies in stays where it is.
void* HoldLibraryOf(const OrtApiBase* base) {
  Dl_info info;
  if (dladdr(base, &info) == 0 || info.dli_fname == nullptr) return nullptr;
  return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
}

Status MakeDomain(const std::string& name, const CustomOps& ops, DomainHandle* made) {
  OrtCustomOpDomain* handle = nullptr;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().CreateCustomOpDomain(name.c_str(), &handle)));
  *made = {handle, ReleaseDomain{&Api()}};
  for (const auto& op : ops) POLYOP_RETURN_IF_ERROR(FromOrt(Api().CustomOpDomain_Add(handle, op.get())));
  return Status::Ok();
}

Status MakeDomains(const Host& host, const MakeOps& make_ops, std::vector<Domain>* domains) {
  for (OpsOfDomain& made : make_ops(host)) {
    Domain& domain = domains->emplace_back();
    domain.name = std::move(made.domain);
    domain.ops = std::move(made.ops);
    if (!domain.name.empty()) POLYOP_RETURN_IF_ERROR(MakeDomain(domain.name, domain.ops, &domain.handle));
  }
  return Status::Ok();
}

// Adds to the default domain of these options, or makes one.
Status AddToDefaultDomain(OrtSessionOptions* options, const CustomOps& ops, std::vector<DomainHandle>* known) {
  int number = 0;
  POLYOP_RETURN_IF_ERROR(ReadNumber(options, kDefaultDomainKey, &number));
  if (number > 0 && static_cast<size_t>(number) <= known->size()) {
    OrtCustomOpDomain* const domain = (*known)[static_cast<size_t>(number) - 1].get();
    for (const auto& op : ops) POLYOP_RETURN_IF_ERROR(FromOrt(Api().CustomOpDomain_Add(domain, op.get())));
    return Status::Ok();
  }
  DomainHandle made;
  POLYOP_RETURN_IF_ERROR(MakeDomain("", ops, &made));
  const std::string text = std::to_string(known->size() + 1);
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().AddSessionConfigEntry(options, kDefaultDomainKey, text.c_str())));
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().AddCustomOpDomain(options, made.get())));
  known->push_back(std::move(made));
  return Status::Ok();
}

// The whole table of a runtime, or an error and nothing.
Status MakeTable(const OrtApiBase* base, const MakeOps& make_ops, std::unique_ptr<Registered>* table) {
  POLYOP_RETURN_IF_ERROR(CheckRegistry());
  auto made = std::make_unique<Registered>();
  POLYOP_RETURN_IF_ERROR(Negotiate(base, &made->host));
  const HostScope scope(made->host);
  made->runtime.reset(HoldLibraryOf(base));
  POLYOP_RETURN_IF_ERROR(MakeDomains(made->host, make_ops, &made->domains));
  *table = std::move(made);
  return Status::Ok();
}

// ONNX Runtime takes a domain from one library, and says so of the second one when a session is made, in words of its
// own.
Status CheckOwner(const OrtSessionOptions* options, const std::string& domain, bool* is_free) {
  const std::string key = kOwnerKey + domain;
  int taken = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().HasSessionConfigEntry(options, key.c_str(), &taken)));
  *is_free = taken == 0;
  if (*is_free) return Status::Ok();
  char owner[256] = {};
  size_t size = sizeof owner;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetSessionConfigEntry(options, key.c_str(), owner, &size)));
  if (std::string_view(owner) == LibraryName()) return Status::Ok();
  return InvalidArgument("the domain '", domain, "' has operators of the library '", owner,
                         "' already, and ONNX Runtime takes a domain from one library: give the nodes of '",
                         LibraryName(), "' another one, as in ", LibraryName(), "::MyOp");
}

Status OwnDomains(OrtSessionOptions* options, const std::vector<Domain>& domains) {
  std::vector<std::string> free;
  for (const Domain& domain : domains) {
    bool is_free = false;
    POLYOP_RETURN_IF_ERROR(CheckOwner(options, domain.name, &is_free));
    if (is_free) free.push_back(kOwnerKey + domain.name);
  }
  for (const std::string& key : free) {
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().AddSessionConfigEntry(options, key.c_str(), LibraryName())));
  }
  return Status::Ok();
}

Status AddAll(OrtSessionOptions* options, const Registered& table, std::vector<DomainHandle>* default_domains) {
  POLYOP_RETURN_IF_ERROR(OwnDomains(options, table.domains));
  for (const Domain& domain : table.domains) {  // what can fail comes first
    if (domain.handle == nullptr) POLYOP_RETURN_IF_ERROR(AddToDefaultDomain(options, domain.ops, default_domains));
  }
  for (const Domain& domain : table.domains) {
    if (domain.handle == nullptr) continue;
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().AddCustomOpDomain(options, domain.handle.get())));
  }
  return Status::Ok();
}

Status RegisterAll(OrtSessionOptions* options, const OrtApiBase* base, int table_number, const MakeOps& make_ops) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (tables == nullptr) tables = new Tables();
  std::unique_ptr<Registered>& table = tables->of_runtime[{base, table_number}];
  const bool is_new = table == nullptr;
  if (is_new) POLYOP_RETURN_IF_ERROR(MakeTable(base, make_ops, &table));
  const HostScope scope(table->host);
  const Status status = AddAll(options, *table, &tables->default_domains[base]);
  if (!status.ok() && is_new) table.reset();
  return status;
}

}  // namespace

Status ReadNumber(const OrtSessionOptions* options, const char* key, int* number) {
  int has = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().HasSessionConfigEntry(options, key, &has)));
  if (has == 0) return Status::Ok();
  char text[16] = {};
  size_t size = sizeof text;
  Status status = FromOrt(Api().GetSessionConfigEntry(options, key, text, &size));
  const char* const end = text + (size > 0 && size <= sizeof text ? size - 1 : 0);
  if (status.ok() && std::from_chars(text, end, *number).ptr == end && *number > 0) return status;
  return InvalidArgument("session configuration '", key, "' is not a number, 1 or greater");
}

OrtStatus* Register(OrtSessionOptions* options, const OrtApiBase* base, int table, const MakeOps& make_ops) {
  // What makes an error is the oldest function of all: its place has never changed.
  const Host oldest{base->GetApi(1), 1, 1};
  const HostScope scope(oldest);
  try {
    return ToOrt(RegisterAll(options, base, table, make_ops));
  } catch (const std::exception& e) {
    return Api().CreateStatus(ORT_FAIL, e.what());
  }
}

}  // namespace polyop::onnxruntime
