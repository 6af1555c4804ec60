// SPDX-License-Identifier: Apache-2.0
#include "adapters/onnxruntime/accelerator.h"

#include <algorithm>

#include "adapters/onnxruntime/registration.h"
#include "core/guard.h"

namespace polyop::onnxruntime {
namespace {

// Returns the version of the operator in models of this opset, or the newest version if the opset is unknown (0).
// `since` is 0 if there is none.
NodeName::Standard VersionFor(const NodeName& node, int opset) {
  NodeName::Standard found;
  for (const NodeName::Standard& version : node.standards) {
    if (version.since != 0 && (opset == 0 || version.since <= opset)) found = version;
  }
  return found;
}

// Returns the first opset whose models have the semantics of `version`.
int FirstEqual(const NodeName& node, const NodeName::Standard& version) {
  int first = version.since;
  for (auto older = node.standards.rbegin(); older != node.standards.rend(); ++older) {
    if (older->since == 0 || older->since >= version.since) continue;
    if (older->preset.first != nullptr) break;
    first = older->since;
  }
  return version.preset.first == nullptr ? first : version.since;
}

// Returns the version to register. ONNX Runtime's optimisers look up its own kernels by a node's version, and the
// session fails if the types of such a kernel have names that the library's schema lacks. There are no kernels of
// version 1.
int StartVersion(const Op& op, const NodeName& node, const NodeName::Standard& version, int opset) {
  const int first = FirstEqual(node, version);
  const bool all_versions = opset != 0 || first == node.standards[0].since;
  const Signature& signature = *op.signatures[0].signature;
  bool types_vary = false;
  for (int i = 0; i < signature.num_inputs(); ++i) types_vary |= signature.input(i).type_variable >= 0;
  return types_vary && all_versions ? 1 : opset != 0 ? version.since : first;
}

// Returns a kernel that only the runtime has: `first` is the type of the first input with a type variable and of the
// outputs, `rest` that of the other inputs with one.
Kernel RuntimeOnlyKernel(const Signature& signature, const Kernel& kernel, DType first, DType rest) {
  Kernel result = kernel;
  result.launch = nullptr;
  bool is_first = true;
  for (int i = 0; i < signature.num_inputs(); ++i) {
    if (signature.input(i).type_variable < 0) continue;
    result.inputs[i] = is_first ? first : rest;
    is_first = false;
  }
  for (int o = 0; o < signature.num_outputs(); ++o) {
    if (signature.output(o).type_variable >= 0) result.outputs[o] = first;
  }
  return result;
}

// Adds types that only the runtime supports: f64, and mixtures of f16 and f32 inputs.
void AddRuntimeOnlyKernels(const Op& op, const NodeName& node, const Host& host, const StandardOverride& standard,
                           CustomOps* ops) {
  const auto kernel =
      std::find_if(op.kernels.begin(), op.kernels.end(), [](const Kernel& k) { return k.device == Device::kCpu; });
  if (kernel == op.kernels.end()) return;
  const Signature& signature = *op.signatures[kernel->signature].signature;
  for (const auto& [first, rest] : {std::pair(DType::kF64, DType::kF64), std::pair(DType::kF16, DType::kF32),
                                    std::pair(DType::kF32, DType::kF16)}) {
    const Kernel own = RuntimeOnlyKernel(signature, *kernel, first, rest);
    const auto has_types = [&](const Kernel& k) { return k.device == Device::kCpu && k.inputs == own.inputs; };
    if (std::any_of(op.kernels.begin(), op.kernels.end(), has_types)) continue;
    const std::span<const NodeCandidate> others;
    ops->push_back(std::make_unique<CustomOp>(op, node, others, own, nullptr, host, standard));
  }
}

}  // namespace

CustomOps MakeStandardOps(int opset, const Host& host) {
  CustomOps ops;
  for (const Op* op : AllOps()) {
    for (const NodeName& node : op->nodes) {
      const NodeName::Standard version = VersionFor(node, opset);
      if (version.since == 0) continue;
      NodeName name = node;
      if (version.preset.first != nullptr) name = node.Preset(version.preset.first, version.preset.second);
      const StandardOverride standard{version.since, StartVersion(*op, node, version, opset)};
      AddCustomOps(*op, name, {}, host, standard, &ops);
      AddRuntimeOnlyKernels(*op, name, host, standard, &ops);
    }
  }
  return ops;
}

OrtStatus* RegisterAccelerator(OrtSessionOptions* options, const OrtApiBase* base) {
  int opset = 0;
  const Host oldest{base->GetApi(kOldestApi), kOldestApi, kOldestApi};
  if (oldest.api != nullptr) {  // otherwise Register() reports the error
    const HostScope scope(oldest);
    OrtStatus* const error = Guarded([&] { return ToOrt(ReadNumber(options, kOpsetKey, &opset)); }, ErrorStatus);
    if (error != nullptr) return error;
  }
  return Register(options, base, Registration::kAccelerator, opset, [&](const Host& host) {
    std::vector<OpsOfDomain> all;
    all.push_back({"", MakeStandardOps(opset, host)});
    return all;
  });
}

}  // namespace polyop::onnxruntime
