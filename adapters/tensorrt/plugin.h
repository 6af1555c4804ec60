// SPDX-License-Identifier: Apache-2.0
// An operator as a TensorRT plugin. One class serves all operators and TensorRT 10, 11 and RTX: it uses only classes
// with the same layout in all of them, links none of them, and uses neither their registry nor their logger.
#pragma once

#include <NvInferRuntime.h>

#include <memory>
#include <string>
#include <vector>

#include "adapters/tensorrt/fields.h"
#include "core/node_resolution.h"
#include "core/op.h"

namespace polyop::tensorrt {

/// Writes an error to stderr. TensorRT itself receives only an error code.
void Report(std::string_view plugin, const char* message) noexcept;

/// A field of every plugin: 1 selects the signatures with outputs of unknown size, for operators that have signatures
/// with and without. TensorRT asks for the number and the types of the outputs before it provides the inputs' ranks.
inline constexpr const char* kSizeTensorsField = "polyop_size_tensors";
/// A field of every plugin: bit i is set if the node lacks input i. The model has an empty constant
/// there, because TensorRT's parser rejects an empty name before another input.
inline constexpr const char* kMissingInputsField = "polyop_missing_inputs";

/// What a node's fields say in addition to the operator's attributes.
struct NodeForm {
  bool size_tensors = false;
  int64_t missing_inputs = 0;
  bool lacks(size_t input) const { return input < 63 && (missing_inputs >> input & 1) != 0; }
};

/// The plugin's outputs are the operator's outputs (an optional output NAME only if the attribute return_NAME is not
/// 0), followed by a size tensor for each output whose size the kernel finds. Inputs whose values determine shapes are
/// TensorRT's shape inputs, not inputs of the plugin.
class Plugin final : public nvinfer1::IPluginV3,
                     public nvinfer1::IPluginV3OneCore,
                     public nvinfer1::v_1_0::IPluginV3OneBuild,
                     public nvinfer1::v_1_0::IPluginV3OneRuntime {
 public:
  Plugin(const Op& op, const NodeName& node, std::shared_ptr<const void> params, const NodeForm& form);

  // IPluginV3
  nvinfer1::IPluginCapability* getCapabilityInterface(nvinfer1::PluginCapabilityType type) noexcept override;
  nvinfer1::IPluginV3* clone() noexcept override;

  // IPluginV3OneCore
  const char* getPluginName() const noexcept override { return name_.c_str(); }
  const char* getPluginVersion() const noexcept override { return "1"; }
  const char* getPluginNamespace() const noexcept override { return ""; }

  // IPluginV3OneBuild
  int32_t getNbOutputs() const noexcept override;
  int32_t getOutputDataTypes(nvinfer1::DataType* output_types, int32_t num_outputs,
                             const nvinfer1::DataType* input_types, int32_t num_inputs) const noexcept override;
  int32_t getOutputShapes(const nvinfer1::DimsExprs* inputs, int32_t num_inputs,
                          const nvinfer1::DimsExprs* shape_inputs, int32_t num_shape_inputs,
                          nvinfer1::DimsExprs* outputs, int32_t num_outputs,
                          nvinfer1::IExprBuilder& builder) noexcept override;
  bool supportsFormatCombination(int32_t position, const nvinfer1::DynamicPluginTensorDesc* tensors, int32_t num_inputs,
                                 int32_t num_outputs) noexcept override;
  int32_t configurePlugin(const nvinfer1::DynamicPluginTensorDesc* inputs, int32_t num_inputs,
                          const nvinfer1::DynamicPluginTensorDesc* outputs, int32_t num_outputs) noexcept override;
  size_t getWorkspaceSize(const nvinfer1::DynamicPluginTensorDesc* inputs, int32_t num_inputs,
                          const nvinfer1::DynamicPluginTensorDesc* outputs,
                          int32_t num_outputs) const noexcept override;

  // IPluginV3OneRuntime
  int32_t onShapeChange(const nvinfer1::PluginTensorDesc* inputs, int32_t num_inputs,
                        const nvinfer1::PluginTensorDesc* outputs, int32_t num_outputs) noexcept override;
  int32_t enqueue(const nvinfer1::PluginTensorDesc* input_descs, const nvinfer1::PluginTensorDesc* output_descs,
                  const void* const* inputs, void* const* outputs, void* workspace,
                  cudaStream_t stream) noexcept override;
  nvinfer1::IPluginV3* attachToContext(nvinfer1::IPluginResourceContext*) noexcept override { return clone(); }
  const nvinfer1::PluginFieldCollection* getFieldsToSerialize() noexcept override;

 private:
  struct Call;

  // Returns the signature's inputs from the plugin's.
  template <class Describe>
  std::vector<AnyTensor> InputsOf(int32_t num_inputs, const Describe& describe) const;
  // Finds the signature that matches the ranks of these tensors.
  Status FindSignature(std::span<const AnyTensor> inputs, int* signature) const;
  // Finds a kernel for these types, of any signature that the plugin may use. All such kernels have the same output
  // types. Sets the types of shape inputs.
  Status FindKernel(std::vector<AnyTensor>* inputs, const Kernel** kernel) const;
  // Returns an error unless the plugin may use the signature: it has as many size tensors as the plugin.
  Status CheckSignature(const Signature& signature) const;
  int NumOutputs() const { return num_outputs_; }
  int NumPending() const;
  int NumPending(const Signature& signature) const;

  const Op& op_;
  const NodeName& node_;
  std::string name_;
  std::shared_ptr<const void> params_;
  NodeForm form_;
  int num_outputs_;  // of the operator
  std::unique_ptr<Fields> fields_;
  // The call that onShapeChange prepared for enqueue.
  std::shared_ptr<const Call> call_;
};

/// Creates plugins of one node type.
class Creator final : public nvinfer1::IPluginCreatorV3One {
 public:
  explicit Creator(const NodeName& node) : name_(node.op_type()) {}
  /// Adds a candidate for nodes of this type. TensorRT does not expose domains, so candidates of all domains are added.
  void Add(const Op& op, const NodeName& node);

  nvinfer1::IPluginV3* createPlugin(const char* name, const nvinfer1::PluginFieldCollection* fields,
                                    nvinfer1::TensorRTPhase phase) noexcept override;
  const nvinfer1::PluginFieldCollection* getFieldNames() noexcept override { return fields_.collection(); }
  const char* getPluginName() const noexcept override { return name_.c_str(); }
  const char* getPluginVersion() const noexcept override { return "1"; }
  const char* getPluginNamespace() const noexcept override { return ""; }

 private:
  std::string name_;
  std::vector<NodeCandidate> candidates_;
  Fields fields_;
};

/// Returns one creator for each node type of all operators with GPU kernels (TensorRT's parser ignores domains), and
/// one for each operator's own name "polyop_<operator>", with the operator's attribute names.
const std::vector<std::unique_ptr<Creator>>& Creators();

}  // namespace polyop::tensorrt
