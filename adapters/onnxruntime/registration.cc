// SPDX-License-Identifier: Apache-2.0
#include "adapters/onnxruntime/registration.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>

#include "adapters/onnxruntime/provider_options.h"
#include "core/guard.h"
#include "core/library.h"
#include "core/unload.h"
#include "platform/process.h"

namespace polyop::onnxruntime {
namespace {

struct CloseLibrary {
  void operator()(void* library) const { ReleaseLibrary(library); }
};

struct ReleaseDomain {
  const OrtApi* api = nullptr;
  void operator()(OrtCustomOpDomain* domain) const { api->ReleaseCustomOpDomain(domain); }
};

using DomainHandle = std::unique_ptr<OrtCustomOpDomain, ReleaseDomain>;

// A domain and its operators. The handle is destroyed first. The default domain has no handle here.
struct Domain {
  std::string name;
  CustomOps ops;
  DomainHandle handle;
};

// The objects registered with one ONNX Runtime. Its sessions keep pointers to all of them.
struct Registered {
  // Keeps the runtime loaded, whose code releases the domains; null if it is not a shared library.
  std::unique_ptr<void, CloseLibrary> runtime;
  Host host;
  std::vector<Domain> domains;
};
struct Tables {
  std::map<std::pair<const OrtApiBase*, std::pair<Registration, int>>, std::unique_ptr<Registered>> of_runtime;
  // ONNX Runtime accepts a domain once per session, and several tables may have operators in the default domain. Each
  // session options object therefore has a separate default domain, whose number is in its configuration.
  std::map<const OrtApiBase*, std::vector<DomainHandle>> default_domains;
};
constexpr const char* kDefaultDomainKey = "polyop.default_domain";
// The key of the library that registered a domain: "polyop.domain.mmcv" is "polyop".
constexpr const char* kOwnerKey = "polyop.domain.";
// The keys of what a library registered: "polyop.registered.polyop.operators" is the identity of the library's copy.
constexpr const char* kRegisteredKey = "polyop.registered.";

Tables* tables = nullptr;  // see core/unload.h for their lifetime
std::mutex mutex;          // of the tables

__attribute__((destructor)) void FreeTables() {
  if (ProcessEnds()) return;
  delete tables;
  FreeCppRuntime();
}

// Returns N of ONNX Runtime 1.N; the newest known for other versions.
uint32_t ReleaseOf(const OrtApiBase* base) {
  unsigned major = 0, minor = 0;
  if (std::sscanf(base->GetVersionString(), "%u.%u", &major, &minor) != 2 || major != 1) return ORT_API_VERSION;
  return minor;
}

// Sets `host` to the newest common API. ONNX Runtime 1.N has the APIs up to N; it prints a warning if a newer one is
// requested.
Status Negotiate(const OrtApiBase* base, uint32_t oldest, Host* host) {
  const uint32_t release = ReleaseOf(base);
  for (uint32_t version = std::min<uint32_t>(ORT_API_VERSION, release); version >= oldest; --version) {
    if (const OrtApi* api = base->GetApi(version)) {
      *host = {api, version, release};
      return Status::Ok();
    }
  }
  return Unsupported("polyop: expected ONNX Runtime 1.", oldest, " or newer, got ", base->GetVersionString());
}

Status MakeDomain(const std::string& name, const CustomOps& ops, DomainHandle* domain) {
  OrtCustomOpDomain* handle = nullptr;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().CreateCustomOpDomain(name.c_str(), &handle)));
  *domain = {handle, ReleaseDomain{&Api()}};
  for (const auto& op : ops) POLYOP_RETURN_IF_ERROR(FromOrt(Api().CustomOpDomain_Add(handle, op.get())));
  return Status::Ok();
}

Status MakeDomains(const Host& host, const MakeOps& make_ops, std::vector<Domain>* domains) {
  for (OpsOfDomain& created : make_ops(host)) {
    Domain& domain = domains->emplace_back();
    domain.name = std::move(created.domain);
    domain.ops = std::move(created.ops);
    if (!domain.name.empty()) POLYOP_RETURN_IF_ERROR(MakeDomain(domain.name, domain.ops, &domain.handle));
  }
  return Status::Ok();
}

// Adds the operators to the default domain of these options, and creates it if there is none.
// Sets `used` once the options refer to an operator.
Status AddToDefaultDomain(OrtSessionOptions* options, const CustomOps& ops, std::vector<DomainHandle>* known,
                          bool* used) {
  int number = 0;
  POLYOP_RETURN_IF_ERROR(ReadNumber(options, kDefaultDomainKey, &number));
  if (number > 0 && static_cast<size_t>(number) <= known->size()) {
    *used = true;  // even if a later operator fails
    OrtCustomOpDomain* const domain = (*known)[static_cast<size_t>(number) - 1].get();
    for (const auto& op : ops) POLYOP_RETURN_IF_ERROR(FromOrt(Api().CustomOpDomain_Add(domain, op.get())));
    return Status::Ok();
  }
  DomainHandle created;
  known->reserve(known->size() + 1);  // the options keep the handle, so adding it to the list must not fail
  POLYOP_RETURN_IF_ERROR(MakeDomain("", ops, &created));
  const std::string text = std::to_string(known->size() + 1);
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().AddSessionConfigEntry(options, kDefaultDomainKey, text.c_str())));
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().AddCustomOpDomain(options, created.get())));
  known->push_back(std::move(created));
  *used = true;
  return Status::Ok();
}

// Creates the complete table of a runtime; on an error it creates nothing.
Status MakeTable(const OrtApiBase* base, const MakeOps& make_ops, std::unique_ptr<Registered>* table,
                 uint32_t oldest_api = kOldestApi) {
  POLYOP_RETURN_IF_ERROR(CheckRegistry());
  auto created = std::make_unique<Registered>();
  POLYOP_RETURN_IF_ERROR(Negotiate(base, oldest_api, &created->host));
  const HostScope scope(created->host);
  created->runtime.reset(HoldLibraryOf(base));
  POLYOP_RETURN_IF_ERROR(MakeDomains(created->host, make_ops, &created->domains));
  *table = std::move(created);
  return Status::Ok();
}

// Returns the identity of this copy of the library: a process may load several, and one again at the same address.
std::string Identity() {
  static const auto loaded = std::chrono::steady_clock::now().time_since_epoch().count();
  return Concat(static_cast<const void*>(&tables), "-", loaded);
}

std::string KeyOf(Registration what) {
  return Concat(kRegisteredKey, LibraryName(), what == Registration::kOperators ? ".operators" : ".accelerator");
}

// Returns an error if the options already have these operators, or any of another copy of this library: ONNX Runtime
// would report only "Domain already set", when a session is created.
Status CheckRegisteredOnce(const OrtSessionOptions* options, Registration what) {
  for (const Registration known : {Registration::kOperators, Registration::kAccelerator}) {
    int has = 0;
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().HasSessionConfigEntry(options, KeyOf(known).c_str(), &has)));
    if (has == 0) continue;
    char copy[256] = {};
    size_t size = sizeof copy;
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetSessionConfigEntry(options, KeyOf(known).c_str(), copy, &size)));
    if (Identity() != copy) {
      return InvalidArgument("session options: expected one copy of library '", LibraryName(),
                             "', got a second one: register libraries of one installation only");
    }
    if (known != what) continue;
    return InvalidArgument(
        "session options: expected ", what == Registration::kOperators ? "the operators" : "the accelerator",
        " of library '", LibraryName(),
        "' once, got a second registration: register the library once, or create new session options");
  }
  return Status::Ok();
}

// Returns an error if another library registered the domain. ONNX Runtime accepts a domain from one library; its own
// error appears only when a session is created and does not name the libraries.
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
  return InvalidArgument("domain '", domain, "' is already registered by library '", owner,
                         "', and ONNX Runtime accepts a domain from one library only: use another domain for the nodes "
                         "of '",
                         LibraryName(), "', such as ", LibraryName(), "::MyOp");
}

Status ClaimDomains(OrtSessionOptions* options, const std::vector<Domain>& domains) {
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

Status AddAll(OrtSessionOptions* options, const Registered& table, std::vector<DomainHandle>* default_domains,
              bool* used) {
  POLYOP_RETURN_IF_ERROR(ClaimDomains(options, table.domains));
  for (const Domain& domain : table.domains) {  // steps that can fail are first
    if (domain.handle != nullptr) continue;
    POLYOP_RETURN_IF_ERROR(AddToDefaultDomain(options, domain.ops, default_domains, used));
  }
  for (const Domain& domain : table.domains) {
    if (domain.handle == nullptr) continue;
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().AddCustomOpDomain(options, domain.handle.get())));
    *used = true;
  }
  return Status::Ok();
}

#if ORT_API_VERSION >= 24
// The provider has brought the operators into the session, and overrides what the accelerator does.
Status CheckNextToProvider(Registration what) {
  if (what == Registration::kOperators) return Status::Ok();
  return InvalidArgument("session options: expected the accelerator or ", ProviderName(),
                         ", got both: the provider overrides what the accelerator does");
}
#endif

Status RegisterAll(OrtSessionOptions* options, const OrtApiBase* base, Registration what, int opset,
                   const MakeOps& make_ops) {
  const std::lock_guard lock(mutex);
  if (tables == nullptr) tables = new Tables();
  std::unique_ptr<Registered>& table = tables->of_runtime[{base, {what, opset}}];
  const bool is_new = table == nullptr;
  if (is_new) POLYOP_RETURN_IF_ERROR(MakeTable(base, make_ops, &table));
  const HostScope scope(table->host);
#if ORT_API_VERSION >= 24
  if (HasProviderOptions(options)) return CheckNextToProvider(what);
#endif
  bool used = false;
  Status status = CheckRegisteredOnce(options, what);
  if (status.ok()) status = AddAll(options, *table, &tables->default_domains[base], &used);
  if (status.ok()) {
    status = FromOrt(Api().AddSessionConfigEntry(options, KeyOf(what).c_str(), Identity().c_str()));
  }
  if (!status.ok() && is_new && !used) table.reset();
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
  return InvalidArgument("session configuration '", key, "': expected an integer >= 1");
}

Status DomainsOfOperators(const OrtApiBase* base, uint32_t oldest_api, const MakeOps& make_ops, const Host** host,
                          std::vector<OrtCustomOpDomain*>* domains) {
  const std::lock_guard lock(mutex);
  if (tables == nullptr) tables = new Tables();
  std::unique_ptr<Registered>& table = tables->of_runtime[{base, {Registration::kOperators, 0}}];
  if (table == nullptr) POLYOP_RETURN_IF_ERROR(MakeTable(base, make_ops, &table, oldest_api));
  const HostScope scope(table->host);
  for (const Domain& domain : table->domains) {
    if (domain.handle != nullptr) {
      domains->push_back(domain.handle.get());
      continue;
    }
    std::vector<DomainHandle>& known = tables->default_domains[base];
    POLYOP_RETURN_IF_ERROR(MakeDomain("", domain.ops, &known.emplace_back()));
    domains->push_back(known.back().get());
  }
  *host = &table->host;
  return Status::Ok();
}

OrtStatus* Register(OrtSessionOptions* options, const OrtApiBase* base, Registration what, int opset,
                    const MakeOps& make_ops) {
  // The function that creates errors is in the oldest API, at an offset that never changed.
  const Host oldest{base->GetApi(1), 1, 1};
  const HostScope scope(oldest);
  return Guarded([&] { return ToOrt(RegisterAll(options, base, what, opset, make_ops)); }, ErrorStatus);
}

}  // namespace polyop::onnxruntime
