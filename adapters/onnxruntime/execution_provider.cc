// SPDX-License-Identifier: Apache-2.0
#include "adapters/onnxruntime/execution_provider.h"

#if ORT_API_VERSION >= 24

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "adapters/onnxruntime/claims.h"
#include "adapters/onnxruntime/fusions.h"
#include "adapters/onnxruntime/known_node.h"
#include "adapters/onnxruntime/provider_options.h"
#include "adapters/onnxruntime/session_call.h"
#include "core/guard.h"
#include "core/library.h"
#include "platform/process.h"

namespace polyop::onnxruntime {
namespace {

// Runs f for a host. No exception may reach the runtime.
//
// Errors are never ORT_EP_FAIL, for which the Python package creates the session again without the provider.
template <class F>
OrtStatus* Guarded(const Host& host, const F& f) {
  const HostScope scope(host);
  return polyop::Guarded([&] { return ToOrt(f()); }, ErrorStatus);
}

const OrtEpApi& EpApi() { return *Api().GetEpApi(); }

// ---- Kernels --------------------------------------------------------------------------------------------------------

// The kernel of a claimed node.
class ClaimedNode : public OrtKernelImpl {
 public:
  ClaimedNode(const Host& host, const char* type, const OrtKernelInfo* info)
      : OrtKernelImpl{}, host_(host), reference_(UsesReferenceKernels()) {
    ort_version_supported = host.version;
    OrtKernelImpl::Compute = [](OrtKernelImpl* self, OrtKernelContext* context) noexcept {
      const auto& node = *static_cast<const ClaimedNode*>(self);
      return Guarded(node.host_, [&] { return node.Run(context).WithPrefix(node.prefix_); });
    };
    OrtKernelImpl::Release = [](OrtKernelImpl* self) noexcept { delete static_cast<ClaimedNode*>(self); };
    const std::string name = NodeNameOf(info);
    prefix_ = Concat("polyop::", type, name.empty() ? "" : " (node '" + name + "')", ": ");
  }

  Status Create(const StandardOperator& standard, const OrtKernelInfo* info) {
    KnownNode known;
    POLYOP_RETURN_IF_ERROR(ReadNode(info, &known));
    for (const KnownTensor& output : known.outputs) {
      outputs_.push_back(output.present ? static_cast<int>(outputs_.size()) : -1);
    }
    kernel_ = standard.make(known.view());
    if (kernel_ != nullptr) return Status::Ok();
    return Internal(prefix_, "expected what the graph stated when the node was claimed, got other types or values");
  }

 private:
  Status Run(OrtKernelContext* context) const {
    std::vector<AnyTensor> inputs;
    POLYOP_RETURN_IF_ERROR(ReadInputs(context, &inputs));
    return RunInSession(*kernel_, reference_, context, inputs, outputs_);
  }

  const Host& host_;
  const bool reference_;
  std::string prefix_;        // "polyop::GridSample (node 'sample'): "
  std::vector<int> outputs_;  // the node's index of each, or -1
  std::unique_ptr<StandardKernel> kernel_;
};

// What the runtime passes to the function that creates an operator's kernels.
struct KernelSource {
  const Host& host;
  const StandardOperator& standard;
};

OrtStatus* CreateKernel(void* state, const OrtKernelInfo* info, OrtKernelImpl** kernel) noexcept {
  const auto& source = *static_cast<const KernelSource*>(state);
  return Guarded(source.host, [&] {
    auto node = std::make_unique<ClaimedNode>(source.host, source.standard.type, info);
    POLYOP_RETURN_IF_ERROR(node->Create(source.standard, info));
    *kernel = node.release();
    return Status::Ok();
  });
}

struct ReleaseBuilder {
  void operator()(OrtKernelDefBuilder* builder) const { EpApi().ReleaseKernelDefBuilder(builder); }
};
struct ReleaseDefinition {
  void operator()(OrtKernelDef* definition) const { EpApi().ReleaseKernelDef(definition); }
};

// Adds one kernel for all types and versions of an operator: the claims have selected them.
Status AddKernel(OrtKernelRegistry* registry, KernelSource& source) {
  constexpr int kLastVersion = 1000;
  const OrtEpApi& api = EpApi();
  OrtKernelDefBuilder* raw_builder = nullptr;
  POLYOP_RETURN_IF_ERROR(FromOrt(api.CreateKernelDefBuilder(&raw_builder)));
  const std::unique_ptr<OrtKernelDefBuilder, ReleaseBuilder> builder(raw_builder);
  POLYOP_RETURN_IF_ERROR(FromOrt(api.KernelDefBuilder_SetDomain(builder.get(), "")));
  POLYOP_RETURN_IF_ERROR(FromOrt(api.KernelDefBuilder_SetOperatorType(builder.get(), source.standard.type)));
  POLYOP_RETURN_IF_ERROR(FromOrt(api.KernelDefBuilder_SetSinceVersion(builder.get(), 1, kLastVersion)));
  POLYOP_RETURN_IF_ERROR(FromOrt(api.KernelDefBuilder_SetExecutionProvider(builder.get(), ProviderName().c_str())));
  OrtKernelDef* raw = nullptr;
  POLYOP_RETURN_IF_ERROR(FromOrt(api.KernelDefBuilder_Build(builder.get(), &raw)));
  const std::unique_ptr<OrtKernelDef, ReleaseDefinition> definition(raw);
  return FromOrt(api.KernelRegistry_AddKernel(registry, definition.get(), CreateKernel, &source));
}

// ---- Providers and their factory ------------------------------------------------------------------------------------

class Factory;

// The provider of a session.
class Provider : public OrtEp {
 public:
  Provider(const Factory& factory, const ProviderOptions& options);

 private:
  static Provider& Self(OrtEp* self) { return *static_cast<Provider*>(self); }
  Status Claim(const OrtGraph* graph, OrtEpGraphSupportInfo* info);
  Status Fuse(const OrtGraph* graph, OrtEpGraphSupportInfo* info, std::set<const OrtNode*>* taken);
  Status CompileAll(const OrtNode* const* fused, size_t count, OrtNodeComputeInfo** functions);

  const Factory& factory_;
  const ProviderOptions options_;
  std::vector<Fusion> fusions_;  // of the graph of the last call
  Comparisons comparisons_;
};

// The factory of a runtime's providers. It is never deleted.
class Factory : public OrtEpFactory {
 public:
  explicit Factory(const Host& host) : OrtEpFactory{}, host_(host) {
    ort_version_supported = host.version;
    OrtEpFactory::GetName = [](const OrtEpFactory* self) noexcept { return Self(self).name_.c_str(); };
    GetVendor = [](const OrtEpFactory*) noexcept { return LibraryName(); };
    GetVendorId = [](const OrtEpFactory*) noexcept -> uint32_t { return 0; };
    GetVersion = [](const OrtEpFactory*) noexcept { return POLYOP_VERSION; };
    GetSupportedDevices = FindDevices;
    CreateEp = CreateProvider;
    ReleaseEp = [](OrtEpFactory*, OrtEp* provider) noexcept { delete static_cast<Provider*>(provider); };
    // Tensors are in the memory of the runtime's own CPU provider.
    CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                         OrtAllocator** allocator) noexcept -> OrtStatus* { return *allocator = nullptr, nullptr; };
    ReleaseAllocator = [](OrtEpFactory*, OrtAllocator*) noexcept {};
    CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** transfer) noexcept -> OrtStatus* {
      return *transfer = nullptr, nullptr;
    };
    IsStreamAware = [](const OrtEpFactory*) noexcept { return false; };
    GetNumCustomOpDomains = [](OrtEpFactory* self, size_t* count) noexcept -> OrtStatus* {
      return *count = Self(self).domains_.size(), nullptr;
    };
    GetCustomOpDomains = [](OrtEpFactory* self, OrtCustomOpDomain** domains, size_t count) noexcept -> OrtStatus* {
      const auto& own = Self(self).domains_;
      return std::copy_n(own.begin(), std::min(count, own.size()), domains), nullptr;
    };
  }

  Status Create(std::vector<OrtCustomOpDomain*> domains) {
    domains_ = std::move(domains);
    POLYOP_RETURN_IF_ERROR(FromOrt(EpApi().CreateKernelRegistry(&registry_)));
    for (const StandardOperator& standard : StandardOperators()) {
      sources_.push_back(std::make_unique<KernelSource>(KernelSource{host_, standard}));
      POLYOP_RETURN_IF_ERROR(AddKernel(registry_, *sources_.back()));
    }
    return Status::Ok();
  }

  const Host& host() const { return host_; }
  const std::string& name() const { return name_; }
  const OrtKernelRegistry* registry() const { return registry_; }

  std::string registration;  // the name under which it is registered; empty if it is not

 private:
  static const Factory& Self(const OrtEpFactory* self) { return *static_cast<const Factory*>(self); }

  static OrtStatus* FindDevices(OrtEpFactory* self, const OrtHardwareDevice* const* devices, size_t count,
                                OrtEpDevice** found, size_t max_found, size_t* num_found) noexcept {
    *num_found = 0;
    return Guarded(Self(self).host_, [&] {
      for (size_t i = 0; i < count && *num_found < std::min<size_t>(max_found, 1); ++i) {
        if (Api().HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
        POLYOP_RETURN_IF_ERROR(FromOrt(EpApi().CreateEpDevice(self, devices[i], nullptr, nullptr, &found[*num_found])));
        ++*num_found;
      }
      return Status::Ok();
    });
  }

  static OrtStatus* CreateProvider(OrtEpFactory* self, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*,
                                   size_t, const OrtSessionOptions* session, const OrtLogger*,
                                   OrtEp** provider) noexcept {
    return Guarded(Self(self).host_, [&] {
      ProviderOptions options;
      POLYOP_RETURN_IF_ERROR(ReadProviderOptions(session, &options));
      *provider = new Provider(Self(self), options);
      return Status::Ok();
    });
  }

  const Host& host_;
  const std::string name_ = ProviderName();
  std::vector<OrtCustomOpDomain*> domains_;
  std::vector<std::unique_ptr<KernelSource>> sources_;
  OrtKernelRegistry* registry_ = nullptr;
};

Provider::Provider(const Factory& factory, const ProviderOptions& options)
    : OrtEp{}, factory_(factory), options_(options) {
  ort_version_supported = factory.host().version;
  OrtEp::GetName = [](const OrtEp* self) noexcept {
    return static_cast<const Provider*>(self)->factory_.name().c_str();
  };
  GetCapability = [](OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* info) noexcept {
    return Guarded(Self(self).factory_.host(), [&] { return Self(self).Claim(graph, info); });
  };
  GetKernelRegistry = [](OrtEp* self, const OrtKernelRegistry** registry) noexcept -> OrtStatus* {
    return *registry = Self(self).factory_.registry(), nullptr;
  };
  Compile = [](OrtEp* self, const OrtGraph**, const OrtNode** fused, size_t count, OrtNodeComputeInfo** functions,
               OrtNode**) noexcept {
    return Guarded(Self(self).factory_.host(), [&] { return Self(self).CompileAll(fused, count, functions); });
  };
  ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** functions, size_t count) noexcept {
    std::for_each_n(functions, count, DeleteFused);
  };
}

Status Provider::Fuse(const OrtGraph* graph, OrtEpGraphSupportInfo* info, std::set<const OrtNode*>* taken) {
  fusions_.clear();
  POLYOP_RETURN_IF_ERROR(FindFusions(graph, options_, &comparisons_, &fusions_));
  OrtNodeFusionOptions options{};
  options.ort_version_supported = factory_.host().version;
  for (const Fusion& fusion : fusions_) {
    POLYOP_RETURN_IF_ERROR(
        FromOrt(EpApi().EpGraphSupportInfo_AddNodesToFuse(info, fusion.nodes.data(), fusion.nodes.size(), &options)));
    taken->insert(fusion.nodes.begin(), fusion.nodes.end());
  }
  return Status::Ok();
}

Status Provider::CompileAll(const OrtNode* const* fused, size_t count, OrtNodeComputeInfo** functions) {
  for (size_t i = 0; i < count; ++i) {
    std::vector<const OrtValueInfo*> outputs;
    POLYOP_RETURN_IF_ERROR(OutputsOf(fused[i], &outputs));
    const char* name = "";
    if (!outputs.empty()) POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetValueInfoName(outputs[0], &name)));
    const auto fusion = std::find_if(fusions_.begin(), fusions_.end(), [&](const Fusion& f) {
      return std::find(f.outputs.begin(), f.outputs.end(), name) != f.outputs.end();
    });
    if (fusion == fusions_.end()) return Internal("expected a node that polyop's patterns found, got another");
    POLYOP_RETURN_IF_ERROR(MakeFused(std::move(*fusion), fused[i], factory_.host(), &functions[i]));
    fusions_.erase(fusion);
  }
  return Status::Ok();
}

Status Provider::Claim(const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
  std::set<const OrtNode*> taken;
  if (options_.patterns) POLYOP_RETURN_IF_ERROR(Fuse(graph, info, &taken));
  std::vector<const OrtNode*> claims;
  POLYOP_RETURN_IF_ERROR(FindClaims(graph, options_, taken, &claims));
  for (const OrtNode* const node : claims) {
    const OrtKernelDef* definition = nullptr;
    POLYOP_RETURN_IF_ERROR(FromOrt(EpApi().EpGraphSupportInfo_LookUpKernel(info, node, &definition)));
    if (definition == nullptr) continue;
    POLYOP_RETURN_IF_ERROR(FromOrt(EpApi().EpGraphSupportInfo_AddSingleNode(info, node)));
  }
  return Status::Ok();
}

std::mutex mutex;
// Raw pointers, because sessions may outlive the library's static objects.
std::map<const OrtApiBase*, Factory*>* factories = nullptr;

Status CreateOrReuse(const char* registration, const OrtApiBase* base, const MakeOps& make_ops,
                     OrtEpFactory** factory) {
  const std::lock_guard lock(mutex);
  if (factories == nullptr) factories = new std::map<const OrtApiBase*, Factory*>();
  Factory*& known = (*factories)[base];
  if (known != nullptr && !known->registration.empty()) {
    return InvalidArgument("library '", LibraryName(), "': expected one registration as execution provider, got '",
                           registration, "' after '", known->registration,
                           "': use the devices of that one, or unregister it");
  }
  if (known == nullptr) {
    const Host* host = nullptr;
    std::vector<OrtCustomOpDomain*> domains;
    POLYOP_RETURN_IF_ERROR(DomainsOfOperators(base, kOldestProviderApi, make_ops, &host, &domains));
    const HostScope scope(*host);
    auto created = std::make_unique<Factory>(*host);
    POLYOP_RETURN_IF_ERROR(created->Create(std::move(domains)));
    // ONNX Runtime unloads a library at its unregistration, also if sessions use it. This handle is never released.
    HoldLibraryOf(reinterpret_cast<const void*>(&CreateKernel));
    known = created.release();
  }
  known->registration = registration == nullptr || *registration == '\0' ? "?" : registration;
  *factory = known;
  return Status::Ok();
}

}  // namespace

OrtStatus* CreateFactory(const char* registration, const OrtApiBase* base, const MakeOps& make_ops,
                         OrtEpFactory** factory) {
  const Host oldest{base->GetApi(1), 1, 1};  // as in Register()
  return Guarded(oldest, [&] { return CreateOrReuse(registration, base, make_ops, factory); });
}

void ReleaseFactory(OrtEpFactory* factory) {
  const std::lock_guard lock(mutex);
  static_cast<Factory*>(factory)->registration.clear();
}

}  // namespace polyop::onnxruntime

#endif
