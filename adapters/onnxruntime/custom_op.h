// SPDX-License-Identifier: Apache-2.0
// One OrtCustomOp per node name, execution provider and combination of types, for all operators.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "adapters/onnxruntime/ort_api.h"
#include "core/node_resolution.h"
#include "core/op.h"

namespace polyop::onnxruntime {

/// The standard ONNX operator that a custom operator overrides.
struct StandardOverride {
  int version = 0;  // the first opset of the newest version with equal semantics; 0: none
  int start = 1;    // the first opset that is overridden
};

class CustomOp : public OrtCustomOp {
 public:
  /// `kernel` is one of the operator's kernels for the types; kernels for the same types and other ranks are found when
  /// a node runs. `provider` is the name of the execution provider; null is the CPU's. `host` outlives the operator. If
  /// a standard operator is overridden, a kernel without a launch function exists only in the runtime. `others` are the
  /// candidates that share the name; `op` has the inputs and outputs of all.
  CustomOp(const Op& op, const NodeName& node, std::span<const NodeCandidate> others, const Kernel& kernel,
           const char* provider, const Host& host, const StandardOverride& standard);

  const Host& host() const { return host_; }
  const Op& op() const { return op_; }
  const NodeName& node() const { return node_; }
  /// Returns the operators that a node may resolve to: `op`, and those that share the name.
  std::span<const NodeCandidate> candidates() const { return candidates_; }
  const Kernel& kernel() const { return kernel_; }
  const char* provider() const { return provider_; }
  /// Returns the version of the standard operator that is overridden, or 0.
  int standard() const { return standard_.version; }
  const Signature& signature() const { return *op_.signatures[kernel_.signature].signature; }
  /// Returns true if kernels for the same input types and other ranks give output `index` another type: then shape
  /// inference selects the overload.
  bool output_type_varies(int index) const { return output_type_varies_[static_cast<size_t>(index)]; }
  /// Returns true if a node may lack the tensor: it is optional, or not every operator of the name has it.
  bool may_lack_input(int index) const;
  bool may_lack_output(int index) const;

 private:
  const Op& op_;
  const NodeName node_;
  std::vector<NodeCandidate> candidates_;
  const Kernel kernel_;
  const char* provider_;
  const Host& host_;
  const StandardOverride standard_;
  std::string op_type_;
  std::array<bool, kMaxTensors> output_type_varies_{};
};

using CustomOps = std::vector<std::unique_ptr<CustomOp>>;

/// Adds one custom operator for each provider and combination of types of the kernels of `op`.
void AddCustomOps(const Op& op, const NodeName& node, std::span<const NodeCandidate> others, const Host& host,
                  const StandardOverride& standard, CustomOps* ops);

/// Returns all custom operators of a domain: for the CPU, and in a build with CUDA for the CUDA providers.
CustomOps MakeCustomOps(std::string_view domain, const Host& host);
/// Returns the domains of all node names, each once, and in polyop's own library kPluginDomain.
std::vector<std::string> AllDomains();

}  // namespace polyop::onnxruntime
