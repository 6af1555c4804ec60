// An operator as a TensorRT plugin. One class serves all operators, and TensorRT 10, 11 and RTX alike: it uses what has
// the same layout in all of them, links none of them and calls neither their registry nor their logger.
#pragma once

#include <NvInferRuntime.h>

#include <memory>
#include <string>
#include <vector>

#include "adapters/tensorrt/fields.h"
#include "core/meaning.h"
#include "core/op.h"

namespace polyop::tensorrt {

/// Says on stderr why a call returns an error: TensorRT learns no more than that.
void Report(std::string_view plugin, const Status& status) noexcept;

/// A field of every plugin: 1 where an operator that has forms with and without outputs of unknown size shall be one
/// with. TensorRT asks how many outputs there are before it tells the inputs' ranks.
inline constexpr const char* kSizeTensorsField = "polyop_size_tensors";

/// The plugin's outputs are the operator's (an optional one, NAME, where the attribute return_NAME is not 0), then for
/// each output whose size the kernel finds a size tensor. Inputs whose values decide shapes are TensorRT's shape inputs
/// and no inputs of the plugin.
class Plugin final : public nvinfer1::IPluginV3,
                     public nvinfer1::IPluginV3OneCore,
                     public nvinfer1::v_1_0::IPluginV3OneBuild,
                     public nvinfer1::v_1_0::IPluginV3OneRuntime {
 public:
  Plugin(const Op& op, const NodeName& node, std::shared_ptr<const void> params, bool size_tensors);

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

  // The signature whose ranks these tensors have.
  Status FindSignature(std::span<const AnyTensor> inputs, int* signature) const;
  int NumOutputs() const { return num_outputs_; }
  int NumPending() const;

  const Op& op_;
  const NodeName& node_;
  std::string name_;
  std::shared_ptr<const void> params_;
  bool size_tensors_;
  int num_outputs_;  // of the operator
  std::unique_ptr<Fields> fields_;
  // What onShapeChange found for enqueue.
  std::shared_ptr<const Call> call_;
};

/// Makes plugins of one node name.
class Creator final : public nvinfer1::IPluginCreatorV3One {
 public:
  explicit Creator(const NodeName& node) : name_(node.op_type()) {}
  /// Nodes of this type may mean this operator, too: in this domain, or in one that TensorRT does not tell.
  void Add(const Op& op, const NodeName& node);

  nvinfer1::IPluginV3* createPlugin(const char* name, const nvinfer1::PluginFieldCollection* fields,
                                    nvinfer1::TensorRTPhase phase) noexcept override;
  const nvinfer1::PluginFieldCollection* getFieldNames() noexcept override { return fields_.collection(); }
  const char* getPluginName() const noexcept override { return name_.c_str(); }
  const char* getPluginVersion() const noexcept override { return "1"; }
  const char* getPluginNamespace() const noexcept override { return ""; }

 private:
  std::string name_;
  std::vector<Meaning> meanings_;
  Fields fields_;
};

/// One creator for every type of node of every operator that has GPU kernels, for TensorRT's parser knows no domains,
/// and one for each operator's own name "polyop_<operator>", with the operator's names of attributes.
const std::vector<std::unique_ptr<Creator>>& Creators();

}  // namespace polyop::tensorrt
