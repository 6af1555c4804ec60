#include "adapters/onnxruntime/accelerator.h"

#include <algorithm>

#include "adapters/onnxruntime/registration.h"

namespace polyop::onnxruntime {
namespace {

// The version that stands for models of this opset, the newest of those that mean the same; none has `since` 0. Of an
// unknown opset that is the newest of all, if models of older ones can be left alone.
NodeName::Standard VersionFor(const NodeName& node, int opset) {
  NodeName::Standard found;
  for (const NodeName::Standard& version : node.standards) {
    if (version.since != 0 && (opset == 0 || version.since <= opset)) found = version;
  }
  return found;
}

// The first opset whose models mean the same.
int FirstEqual(const NodeName& node, const NodeName::Standard& version) {
  int first = version.since;
  for (auto older = node.standards.rbegin(); older != node.standards.rend(); ++older) {
    if (older->since == 0 || older->since >= version.since) continue;
    if (older->preset.first != nullptr) break;
    first = older->since;
  }
  return version.preset.first == nullptr ? first : version.since;
}

// ONNX Runtime's optimisers look for its own kernels by a node's version, and fail the session where they find one
// whose types have names that a library's schema does not have. There is none of version 1.
int StartOf(const Op& op, const NodeName& node, const NodeName::Standard& version, int opset) {
  const int first = FirstEqual(node, version);
  const bool all_versions = opset != 0 || first == node.standards[0].since;
  const Signature& signature = *op.signatures[0].signature;
  bool types_vary = false;
  for (int i = 0; i < signature.num_inputs(); ++i) types_vary |= signature.input(i).type_variable >= 0;
  return types_vary && all_versions ? 1 : opset != 0 ? version.since : first;
}

// A kernel of the runtime alone: `first` for the first type that may vary and for what follows it, `rest` for others.
Kernel RuntimesOwn(const Signature& signature, const Kernel& kernel, DType first, DType rest) {
  Kernel made = kernel;
  made.launch = nullptr;
  bool is_first = true;
  for (int i = 0; i < signature.num_inputs(); ++i) {
    if (signature.input(i).type_variable < 0) continue;
    made.inputs[i] = is_first ? first : rest;
    is_first = false;
  }
  for (int o = 0; o < signature.num_outputs(); ++o) {
    if (signature.output(o).type_variable >= 0) made.outputs[o] = first;
  }
  return made;
}

// Types that the runtime takes and polyop does not: f64, and inputs of f16 beside others of f32.
void AddRuntimesOwn(const Op& op, const NodeName& node, const Host& host, const StandsFor& standard, CustomOps* made) {
  const auto kernel =
      std::find_if(op.kernels.begin(), op.kernels.end(), [](const Kernel& k) { return k.device == Device::kCpu; });
  if (kernel == op.kernels.end()) return;
  const Signature& signature = *op.signatures[kernel->signature].signature;
  for (const auto& [first, rest] : {std::pair(DType::kF64, DType::kF64), std::pair(DType::kF16, DType::kF32),
                                    std::pair(DType::kF32, DType::kF16)}) {
    const Kernel own = RuntimesOwn(signature, *kernel, first, rest);
    if (own.inputs == kernel->inputs) continue;
    const std::span<const Meaning> others;
    made->push_back(std::make_unique<CustomOp>(op, node, others, own, nullptr, host, standard));
  }
}

}  // namespace

CustomOps MakeStandardOps(int opset, const Host& host) {
  CustomOps made;
  for (const Op* op : AllOps()) {
    for (const NodeName& node : op->nodes) {
      const NodeName::Standard version = VersionFor(node, opset);
      if (version.since == 0) continue;
      NodeName standing = node;
      if (version.preset.first != nullptr) standing = node.Preset(version.preset.first, version.preset.second);
      const StandsFor standard{version.since, StartOf(*op, node, version, opset)};
      AddCustomOps(*op, standing, {}, host, standard, &made);
      AddRuntimesOwn(*op, standing, host, standard, &made);
    }
  }
  return made;
}

OrtStatus* RegisterAccelerator(OrtSessionOptions* options, const OrtApiBase* base) {
  int opset = 0;
  {
    const Host host{base->GetApi(kOldestApi), kOldestApi, kOldestApi};
    if (host.api != nullptr) {  // else registering says what is wanted
      const HostScope scope(host);
      if (const Status status = ReadNumber(options, kOpsetKey, &opset); !status.ok()) return ToOrt(status);
    }
  }
  return Register(options, base, opset, [&](const Host& host) {
    std::vector<OpsOfDomain> all;
    all.push_back({"", MakeStandardOps(opset, host)});
    return all;
  });
}

}  // namespace polyop::onnxruntime
