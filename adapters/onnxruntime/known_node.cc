// SPDX-License-Identifier: Apache-2.0
#include "adapters/onnxruntime/known_node.h"

#if ORT_API_VERSION >= 24

#include <array>
#include <span>

#include "adapters/onnxruntime/node_attributes.h"
#include "adapters/onnxruntime/session_call.h"
#include "core/elements.h"

namespace polyop::onnxruntime {
namespace {

// Larger constants are weights, whose values no kernel's choice depends on and whose access may read a file.
constexpr int64_t kMaxConstant = 64;

// Reads type and shape. Leaves out what is unknown, and all of what is no tensor.
Status ReadType(const OrtTypeInfo* type, KnownTensor* tensor) {
  const OrtTensorTypeAndShapeInfo* info = nullptr;
  if (type != nullptr) POLYOP_RETURN_IF_ERROR(FromOrt(Api().CastTypeInfoToTensorInfo(type, &info)));
  if (info == nullptr) return Status::Ok();
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  DType dtype = DType::kF32;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetTensorElementType(info, &element)));
  if (FromOrt(element, &dtype)) tensor->dtype = dtype;
  size_t rank = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetDimensionsCount(info, &rank)));
  if (!Api().TensorTypeAndShape_HasShape(info) || rank > kMaxRank) return Status::Ok();
  std::array<int64_t, kMaxRank> extents{};
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetDimensions(info, extents.data(), rank)));
  Shape shape;
  for (size_t d = 0; d < rank; ++d) shape.push_back(extents[d] >= 0 ? extents[d] : kUnknownExtent);
  tensor->shape = shape;
  return Status::Ok();
}

bool IsSmall(const KnownTensor& tensor, int64_t max_constant) {
  if (!tensor.dtype.has_value() || !tensor.shape.has_value()) return false;
  const std::optional<int64_t> elements = tensor.shape->NumElements();
  return elements.has_value() && *elements <= max_constant;
}

Status ReadElements(const OrtValue* value, KnownTensor* tensor) {
  void* data = nullptr;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetTensorMutableData(const_cast<OrtValue*>(value), &data)));
  tensor->constant = data;
  return Status::Ok();
}

Status ReadValues(const std::vector<const OrtValueInfo*>& values, std::vector<KnownTensor>* tensors) {
  tensors->resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) POLYOP_RETURN_IF_ERROR(ReadValue(values[i], kMaxConstant, &(*tensors)[i]));
  return Status::Ok();
}

struct ReleaseType {
  void operator()(OrtTypeInfo* type) const { Api().ReleaseTypeInfo(type); }
};

template <class GetType>
Status ReadTypeOf(const OrtKernelInfo* info, size_t index, const GetType& get, KnownTensor* tensor) {
  OrtTypeInfo* raw = nullptr;
  tensor->present = true;
  POLYOP_RETURN_IF_ERROR(FromOrt(get(info, index, &raw)));
  const std::unique_ptr<OrtTypeInfo, ReleaseType> type(raw);
  return ReadType(type.get(), tensor);
}

Status ReadInput(const OrtKernelInfo* info, size_t index, KnownTensor* tensor) {
  size_t size = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().KernelInfo_GetInputName(info, index, nullptr, &size)));
  if (size <= 1) return Status::Ok();  // omitted
  POLYOP_RETURN_IF_ERROR(ReadTypeOf(info, index, Api().KernelInfo_GetInputTypeInfo, tensor));
  int is_constant = 0;
  const OrtValue* elements = nullptr;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().KernelInfoGetConstantInput_tensor(info, index, &is_constant, &elements)));
  return is_constant == 0 || elements == nullptr || !IsSmall(*tensor, kMaxConstant) ? Status::Ok()
                                                                                    : ReadElements(elements, tensor);
}

}  // namespace

bool GraphAttributes::Get(const char* name, AttrValue* value) {
  const OrtOpAttr* attribute = nullptr;
  const bool found = FromOrt(Api().Node_GetAttributeByName(node_, name, &attribute)).ok();
  if (!found || attribute == nullptr) return false;
  OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
  if (!FromOrt(Api().OpAttr_GetType(attribute, &type)).ok()) return false;
  if (type != ORT_OP_ATTR_TENSOR) return ReadAttribute(attribute, value);
  OrtValue* raw = nullptr;
  AnyTensor tensor;
  if (!FromOrt(Api().OpAttr_GetTensorAttributeAsOrtValue(attribute, &raw)).ok()) return false;
  const std::unique_ptr<OrtValue, decltype(Api().ReleaseValue)> owned(raw, Api().ReleaseValue);
  if (!ReadTensor(raw, &tensor).ok() || tensor.shape.NumElements() != 1) return false;
  const double number = ReadElement(tensor.dtype, tensor.data, 0);
  *value = IsReal(tensor.dtype) ? AttrValue::Float(number) : AttrValue::Int(static_cast<int64_t>(number));
  return true;
}

Status ReadTensor(const OrtValue* value, AnyTensor* tensor) {
  if (value == nullptr) return Unsupported("a tensor without elements");
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetTensorTypeAndShape(value, &raw)));
  const TypeAndShape info(raw);
  size_t rank = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetTensorElementType(raw, &type)));
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetDimensionsCount(raw, &rank)));
  std::vector<int64_t> extents(rank);
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetDimensions(raw, extents.data(), rank)));
  if (!FromOrt(type, &tensor->dtype)) return Unsupported("an element type");
  tensor->shape = Shape(std::span<const int64_t>(extents));
  tensor->present = true;
  return FromOrt(Api().GetTensorMutableData(const_cast<OrtValue*>(value), &tensor->data));
}

Status ReadValue(const OrtValueInfo* value, int64_t max_constant, KnownTensor* tensor) {
  if (value == nullptr) return Status::Ok();
  tensor->present = true;
  const OrtTypeInfo* type = nullptr;
  if (!FromOrt(Api().GetValueInfoTypeInfo(value, &type)).ok()) return Status::Ok();
  POLYOP_RETURN_IF_ERROR(ReadType(type, tensor));
  bool is_constant = false;
  const OrtValue* elements = nullptr;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().ValueInfo_IsConstantInitializer(value, &is_constant)));
  if (!is_constant || !IsSmall(*tensor, max_constant)) return Status::Ok();
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().ValueInfo_GetInitializerValue(value, &elements)));
  return elements == nullptr ? Status::Ok() : ReadElements(elements, tensor);
}

Status InputsOf(const OrtNode* node, std::vector<const OrtValueInfo*>* values) {
  size_t count = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().Node_GetNumInputs(node, &count)));
  values->resize(count);
  return FromOrt(Api().Node_GetInputs(node, values->data(), count));
}

Status OutputsOf(const OrtNode* node, std::vector<const OrtValueInfo*>* values) {
  size_t count = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().Node_GetNumOutputs(node, &count)));
  values->resize(count);
  return FromOrt(Api().Node_GetOutputs(node, values->data(), count));
}

Status OpsetsOf(const OrtGraph* graph, std::vector<const char*>* domains, std::vector<int64_t>* versions) {
  size_t count = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().Graph_GetNumOperatorSets(graph, &count)));
  domains->resize(count);
  versions->resize(count);
  return FromOrt(Api().Graph_GetOperatorSets(graph, domains->data(), versions->data(), count));
}

Status AttributesOf(const OrtNode* node, std::vector<const OrtOpAttr*>* attributes) {
  size_t count = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().Node_GetNumAttributes(node, &count)));
  attributes->resize(count);
  return FromOrt(Api().Node_GetAttributes(node, attributes->data(), count));
}

Status CapturedBy(const OrtNode* node, std::vector<const OrtValueInfo*>* values) {
  size_t count = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().Node_GetNumImplicitInputs(node, &count)));
  values->resize(count);
  return FromOrt(Api().Node_GetImplicitInputs(node, values->data(), count));
}

Status ReadBy(const OrtNode* node, std::vector<const OrtValueInfo*>* values) {
  std::vector<const OrtValueInfo*> captured;
  POLYOP_RETURN_IF_ERROR(InputsOf(node, values));
  POLYOP_RETURN_IF_ERROR(CapturedBy(node, &captured));
  values->insert(values->end(), captured.begin(), captured.end());
  return Status::Ok();
}

Status EndsOf(const OrtGraph* graph, bool inputs, std::vector<const OrtValueInfo*>* values) {
  size_t count = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt((inputs ? Api().Graph_GetNumInputs : Api().Graph_GetNumOutputs)(graph, &count)));
  values->resize(count);
  return FromOrt((inputs ? Api().Graph_GetInputs : Api().Graph_GetOutputs)(graph, values->data(), count));
}

Status ReadNode(const OrtNode* node, KnownNode* known) {
  std::vector<const OrtValueInfo*> inputs, outputs;
  POLYOP_RETURN_IF_ERROR(InputsOf(node, &inputs));
  POLYOP_RETURN_IF_ERROR(OutputsOf(node, &outputs));
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().Node_GetSinceVersion(node, &known->since)));
  known->attributes = std::make_unique<GraphAttributes>(node);
  POLYOP_RETURN_IF_ERROR(ReadValues(inputs, &known->inputs));
  return ReadValues(outputs, &known->outputs);
}

Status ReadNode(const OrtKernelInfo* info, KnownNode* known) {
  size_t inputs = 0, outputs = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().KernelInfo_GetInputCount(info, &inputs)));
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().KernelInfo_GetOutputCount(info, &outputs)));
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().KernelInfo_GetOperatorSinceVersion(info, &known->since)));
  known->attributes = std::make_unique<KernelAttributes>(info);
  known->inputs.resize(inputs);
  known->outputs.resize(outputs);
  for (size_t i = 0; i < inputs; ++i) POLYOP_RETURN_IF_ERROR(ReadInput(info, i, &known->inputs[i]));
  for (size_t o = 0; o < outputs; ++o) {
    if (!OutputIsNamed(info, o)) continue;
    POLYOP_RETURN_IF_ERROR(ReadTypeOf(info, o, Api().KernelInfo_GetOutputTypeInfo, &known->outputs[o]));
  }
  return Status::Ok();
}

}  // namespace polyop::onnxruntime

#endif
