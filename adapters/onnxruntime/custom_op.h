// One OrtCustomOp per node name, provider and combination of types. Nothing here knows an operator by name.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "adapters/onnxruntime/ort_api.h"
#include "core/meaning.h"
#include "core/op.h"

namespace polyop::onnxruntime {

/// Which operator of ONNX's default domain a custom operator stands for.
struct StandsFor {
  int version = 0;  // the opset that it exists since, the newest of equal meaning; 0: for none
  int start = 1;    // the opset from which on it does so
};

class CustomOp : public OrtCustomOp {
 public:
  /// `kernel` is any of the operator's kernels for the types; the others of the same types and of
  /// other ranks are found when a node runs. `provider` names the execution provider, null is the CPU's. `host`
  /// outlives the operator. Where it stands for a standard operator, a kernel without a launch function is one that
  /// only the runtime has. `others` share the name; `op` has the inputs and outputs of all.
  CustomOp(const Op& op, const NodeName& node, std::span<const Meaning> others, const Kernel& kernel,
           const char* provider, const Host& host, const StandsFor& standard);

  const Host& host() const { return host_; }
  const Op& op() const { return op_; }
  const NodeName& node() const { return node_; }
  /// What a node may mean: `op`, and those that share the name.
  std::span<const Meaning> meanings() const { return meanings_; }
  const Kernel& kernel() const { return kernel_; }
  const char* provider() const { return provider_; }
  /// The version of the standard operator that it stands for, or 0.
  int standard() const { return standard_.version; }
  const Signature& signature() const { return *op_.signatures[kernel_.signature].signature; }
  /// Whether kernels for the same types of inputs, of other ranks, give output `index` another type: shape inference
  /// then decides which of the overloads runs.
  bool output_type_varies(int index) const { return output_type_varies_[static_cast<size_t>(index)]; }
  /// Whether a node may lack the tensor: it is optional, or not every operator of the name has it.
  bool may_lack_input(int index) const;
  bool may_lack_output(int index) const;

 private:
  const Op& op_;
  const NodeName node_;
  std::vector<Meaning> meanings_;
  const Kernel kernel_;
  const char* provider_;
  const Host& host_;
  const StandsFor standard_;
  std::string op_type_;
  std::array<bool, kMaxTensors> output_type_varies_{};
};

using CustomOps = std::vector<std::unique_ptr<CustomOp>>;

/// Adds one operator for each provider and combination of types that kernels of `op` are for.
void AddCustomOps(const Op& op, const NodeName& node, std::span<const Meaning> others, const Host& host,
                  const StandsFor& standard, CustomOps* made);

/// All custom operators of a domain: for the CPU, and for the CUDA providers where polyop is built with CUDA.
CustomOps MakeCustomOps(std::string_view domain, const Host& host);
/// The domains of all node names, each once.
std::vector<std::string> AllDomains();

}  // namespace polyop::onnxruntime
