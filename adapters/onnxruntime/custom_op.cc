// SPDX-License-Identifier: Apache-2.0
#include "adapters/onnxruntime/custom_op.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "adapters/onnxruntime/node_kernel.h"
#include "adapters/onnxruntime/shape_inference.h"
#include "core/guard.h"
#include "core/library.h"

namespace polyop::onnxruntime {
namespace {

const CustomOp& Self(const OrtCustomOp* op) { return *static_cast<const CustomOp*>(op); }

OrtCustomOpInputOutputCharacteristic InputCharacteristic(const OrtCustomOp* op, size_t index) {
  const int i = static_cast<int>(index);
  if (Self(op).signature().input(i).variadic) return INPUT_OUTPUT_VARIADIC;
  return Self(op).may_lack_input(i) ? INPUT_OUTPUT_OPTIONAL : INPUT_OUTPUT_REQUIRED;
}

OrtCustomOpInputOutputCharacteristic OutputCharacteristic(const OrtCustomOp* op, size_t index) {
  return Self(op).may_lack_output(static_cast<int>(index)) ? INPUT_OUTPUT_OPTIONAL : INPUT_OUTPUT_REQUIRED;
}

ONNXTensorElementDataType InputType(const OrtCustomOp* op, size_t index) {
  const TensorSpec& spec = Self(op).signature().input(static_cast<int>(index));
  return spec.any_dtype ? ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED : ToOrt(Self(op).kernel().inputs[index]);
}

OrtMemType InputMemory(const OrtCustomOp* op, size_t index) {
  const CustomOp& self = Self(op);
  const OpSignature& resolved = self.op().signatures[self.kernel().signature];
  return resolved.needs_value(static_cast<int>(index)) ? OrtMemTypeCPUInput : OrtMemTypeDefault;
}

// Runs f for the operator's host. Converts exceptions (such as bad_alloc) to a status, since none may reach the
// runtime.
template <class F>
OrtStatus* Guarded(const CustomOp& op, const F& f) {
  const HostScope scope(op.host());
  return polyop::Guarded([&] { return ToOrt(f()); }, ErrorStatus);
}

OrtStatus* CreateNode(const OrtCustomOp* op, const OrtApi*, const OrtKernelInfo* info, void** kernel) {
  return Guarded(Self(op), [&] {
    std::unique_ptr<NodeKernel> created;
    POLYOP_RETURN_IF_ERROR(NodeKernel::Create(Self(op), info, &created));
    *kernel = created.release();
    return Status::Ok();
  });
}

OrtStatus* ComputeNode(void* kernel, OrtKernelContext* context) {
  const auto& node = *static_cast<const NodeKernel*>(kernel);
  return Guarded(node.custom_op(), [&] { return node.Compute(context); });
}

OrtStatus* Infer(const OrtCustomOp* op, OrtShapeInferContext* context) {
  return Guarded(Self(op), [&] { return InferShapes(Self(op), context); });
}

bool SameInputs(const Signature& a, const Kernel& ka, const Signature& b, const Kernel& kb) {
  if (a.num_inputs() != b.num_inputs()) return false;
  for (int i = 0; i < a.num_inputs(); ++i) {
    if (!a.input(i).any_dtype && ka.inputs[i] != kb.inputs[i]) return false;
  }
  return true;
}

// CUDA's execution provider is built into ONNX Runtime, or a separate plugin with another name.
std::span<const char* const> ProvidersOf(Device device) {
  static constexpr const char* kCpu[] = {nullptr};
  static constexpr const char* kCuda[] = {"CUDAExecutionProvider", "CudaPluginExecutionProvider"};
  switch (device) {
    case Device::kCpu: return kCpu;
    case Device::kCuda: return kCuda;
    case Device::kCudaEmulated:
    case Device::kReference: return {};
  }
  return {};
}

// Returns true if a node may omit an input and still have a later one.
bool MayOmitInnerInput(const CustomOp& op) {
  int optional = 0;
  for (int i = 0; i < op.signature().num_inputs(); ++i) optional += op.may_lack_input(i);
  return optional > 1;
}

bool SameTypes(const Signature& a, const Kernel& ka, const Signature& b, const Kernel& kb) {
  return SameInputs(a, ka, b, kb) && ka.outputs == kb.outputs;
}

}  // namespace

CustomOp::CustomOp(const Op& op, const NodeName& node, std::span<const NodeCandidate> others, const Kernel& kernel,
                   const char* provider, const Host& host, const StandardOverride& standard)
    : OrtCustomOp{},
      op_(op),
      node_(node),
      candidates_(others.begin(), others.end()),
      kernel_(kernel),
      provider_(provider),
      host_(host),
      standard_(standard),
      op_type_(node.op_type()) {
  candidates_.push_back({&op_, &node_});
  for (const Kernel& other : op.kernels) {
    const Signature& theirs = *op.signatures[other.signature].signature;
    if (other.device != kernel.device || !SameInputs(signature(), kernel, theirs, other)) continue;
    for (size_t o = 0; o < kMaxTensors; ++o) output_type_varies_[o] |= other.outputs[o] != kernel.outputs[o];
  }
  OrtCustomOp& self = *this;
  self.version = host.version;
  self.GetName = [](const OrtCustomOp* o) { return Self(o).op_type_.c_str(); };
  self.GetExecutionProviderType = [](const OrtCustomOp* o) { return Self(o).provider(); };
  self.GetInputType = InputType;
  self.GetInputTypeCount = [](const OrtCustomOp* o) { return static_cast<size_t>(Self(o).signature().num_inputs()); };
  self.GetOutputType = [](const OrtCustomOp* o, size_t i) { return ToOrt(Self(o).kernel().outputs[i]); };
  self.GetOutputTypeCount = [](const OrtCustomOp* o) { return static_cast<size_t>(Self(o).signature().num_outputs()); };
  self.GetInputCharacteristic = InputCharacteristic;
  self.GetOutputCharacteristic = OutputCharacteristic;
  self.GetInputMemoryType = InputMemory;
  self.GetVariadicInputMinArity = [](const OrtCustomOp*) { return 1; };
  self.GetVariadicInputHomogeneity = [](const OrtCustomOp*) { return 1; };
  self.GetVariadicOutputMinArity = [](const OrtCustomOp*) { return 1; };
  self.GetVariadicOutputHomogeneity = [](const OrtCustomOp*) { return 1; };
  self.KernelDestroy = [](void* k) {
    std::unique_ptr<NodeKernel> node_kernel(static_cast<NodeKernel*>(k));
    const HostScope scope(node_kernel->custom_op().host());
    node_kernel.reset();
  };
  self.CreateKernelV2 = CreateNode;
  self.KernelComputeV2 = ComputeNode;
  if (host.release >= kInfersWithMissingInputs || !MayOmitInnerInput(*this)) self.InferOutputShapeFn = Infer;
  self.GetStartVersion = [](const OrtCustomOp* o) { return Self(o).standard_.start; };
  self.GetEndVersion = [](const OrtCustomOp*) { return INT32_MAX; };
  // No input may be overwritten. The runtime calls these functions without checking for null pointers.
  self.GetMayInplace = [](int**, int**) -> size_t { return 0; };
  self.ReleaseMayInplace = [](int*, int*) {};
  self.GetAliasMap = [](int**, int**) -> size_t { return 0; };
  self.ReleaseAliasMap = [](int*, int*) {};
}

bool CustomOp::may_lack_input(int index) const {
  return std::any_of(candidates_.begin(), candidates_.end(), [&](const NodeCandidate& candidate) {
    const Signature& signature = *candidate.op->signatures[0].signature;
    return index >= signature.num_inputs() || signature.input(index).optional;
  });
}

bool CustomOp::may_lack_output(int index) const {
  return std::any_of(candidates_.begin(), candidates_.end(), [&](const NodeCandidate& candidate) {
    const Signature& signature = *candidate.op->signatures[0].signature;
    return index >= signature.num_outputs() || signature.output(index).optional;
  });
}

void AddCustomOps(const Op& op, const NodeName& node, std::span<const NodeCandidate> others, const Host& host,
                  const StandardOverride& standard, CustomOps* ops) {
  const auto first = static_cast<std::ptrdiff_t>(ops->size());
  for (const Kernel& kernel : op.kernels) {
    const std::span<const char* const> providers = ProvidersOf(kernel.device);
    if (providers.empty()) continue;
    const Signature& signature = *op.signatures[kernel.signature].signature;
    const bool known = std::any_of(ops->begin() + first, ops->end(), [&](const auto& other) {
      return kernel.device == other->kernel().device &&
             SameTypes(signature, kernel, other->signature(), other->kernel());
    });
    if (known) continue;
    if (signature.variadic() && host.version < kTypesOfVariadic && ops->begin() + first != ops->end() &&
        ops->back()->kernel().device == kernel.device) {
      continue;
    }
    for (const char* provider : providers) {
      ops->push_back(std::make_unique<CustomOp>(op, node, others, kernel, provider, host, standard));
    }
  }
}

CustomOps MakeCustomOps(std::string_view domain, const Host& host) {
  CustomOps ops;
  const bool is_of_plugins = domain == kPluginDomain;
  for (const std::vector<NodeCandidate>& candidates :
       is_of_plugins ? CandidatesByPluginName(AllOps()) : CandidatesByName(AllOps())) {
    if (!is_of_plugins && candidates[0].node->domain() != domain) continue;
    const NodeCandidate& schema = SchemaCandidate(candidates);
    std::vector<NodeCandidate> others;
    std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(others),
                 [&](const NodeCandidate& candidate) { return candidate.op != schema.op; });
    AddCustomOps(*schema.op, *schema.node, others, host, {}, &ops);
  }
  return ops;
}

std::vector<std::string> AllDomains() {
  std::vector<std::string> domains;
  for (const Op* op : AllOps()) {
    for (const NodeName& node : op->nodes) {
      const std::string domain(node.domain());
      if (std::find(domains.begin(), domains.end(), domain) == domains.end()) domains.push_back(domain);
    }
  }
  // ONNX Runtime accepts a domain from one library only.
  if (std::string_view(LibraryName()) == "polyop") domains.emplace_back(kPluginDomain);
  return domains;
}

}  // namespace polyop::onnxruntime
