// SPDX-License-Identifier: Apache-2.0
#include "adapters/onnxruntime/part_model.h"

#if ORT_API_VERSION >= 24

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

#include "adapters/onnxruntime/known_node.h"
#include "adapters/onnxruntime/node_attributes.h"

namespace polyop::onnxruntime {
namespace {

// A message of ONNX's protocol buffers. Its fields have the numbers of onnx.proto.
class Message {
 public:
  void Integer(int field, int64_t value) {
    Varint(static_cast<uint64_t>(field) << 3);
    Varint(static_cast<uint64_t>(value));
  }
  void Real(int field, float value) {
    Varint(static_cast<uint64_t>(field) << 3 | 5);
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(bits >> shift);
  }
  void Bytes(int field, std::string_view bytes) {
    Varint(static_cast<uint64_t>(field) << 3 | 2);
    Varint(bytes.size());
    bytes_ += bytes;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value) {
    for (; value > 0x7f; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

enum AttributeType { kFloat = 1, kInt, kString, kTensor, kGraph, kFloats, kInts };

std::string NameOf(const OrtValueInfo* value) {
  const char* name = "";
  return value != nullptr && FromOrt(Api().GetValueInfoName(value, &name)).ok() ? name : "";
}

Message Tensor(const AnyTensor& tensor) {
  Message message;
  for (const int64_t extent : tensor.shape.span()) message.Integer(1, extent);
  message.Integer(2, ToOrt(tensor.dtype));  // the numbers of both are equal
  message.Bytes(9, BytesOf(tensor));
  return message;
}

Message Initializer(const std::string& name, const AnyTensor& tensor) {
  Message message = Tensor(tensor);
  message.Bytes(8, name);
  return message;
}

// A value of a graph; its type follows from the nodes.
Message Named(const std::string& name) {
  Message message;
  message.Bytes(1, name);
  return message;
}

// An input of a graph. The runtime knows the type and the shape of some that it does not find itself.
Message Input(const std::string& name, const KnownTensor& known, bool with_shape) {
  Message message = Named(name);
  if (!known.dtype.has_value()) return message;
  Message tensor, type;
  tensor.Integer(1, ToOrt(*known.dtype));
  if (with_shape && known.shape.has_value()) {
    Message shape;
    for (const int64_t extent : known.shape->span()) {
      Message dimension;
      if (extent >= 0) dimension.Integer(1, extent);
      shape.Bytes(1, dimension.bytes());
    }
    tensor.Bytes(2, shape.bytes());
  }
  type.Bytes(1, tensor.bytes());
  message.Bytes(2, type.bytes());
  return message;
}

Status AddValue(const AttrValue& value, Message* to) {
  switch (value.type) {
    case AttrType::kInt: to->Integer(3, value.ints[0]), to->Integer(20, kInt); break;
    case AttrType::kFloat: to->Real(2, static_cast<float>(value.floats[0])), to->Integer(20, kFloat); break;
    case AttrType::kString: to->Bytes(4, value.text), to->Integer(20, kString); break;
    case AttrType::kInts:
      for (const int64_t i : value.ints) to->Integer(8, i);
      to->Integer(20, kInts);
      break;
    case AttrType::kFloats:
      for (const double real : value.floats) to->Real(7, static_cast<float>(real));
      to->Integer(20, kFloats);
      break;
  }
  return Status::Ok();
}

Status AddAttributes(const OrtNode* node, Message* to) {
  std::vector<const OrtOpAttr*> attributes;
  POLYOP_RETURN_IF_ERROR(AttributesOf(node, &attributes));
  for (const OrtOpAttr* const attribute : attributes) {
    const char* name = "";
    OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().OpAttr_GetName(attribute, &name)));
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().OpAttr_GetType(attribute, &type)));
    if (type == ORT_OP_ATTR_GRAPH) continue;
    Message message = Named(name);
    AttrValue value;
    if (type == ORT_OP_ATTR_TENSOR) {
      OrtValue* raw = nullptr;
      AnyTensor tensor;
      POLYOP_RETURN_IF_ERROR(FromOrt(Api().OpAttr_GetTensorAttributeAsOrtValue(attribute, &raw)));
      const std::unique_ptr<OrtValue, decltype(Api().ReleaseValue)> owned(raw, Api().ReleaseValue);
      POLYOP_RETURN_IF_ERROR(ReadTensor(raw, &tensor));
      message.Bytes(5, Tensor(tensor).bytes());
      message.Integer(20, kTensor);
    } else if (ReadAttribute(attribute, &value)) {
      POLYOP_RETURN_IF_ERROR(AddValue(value, &message));
    } else {
      return Unsupported("an attribute '", name, "' of this type");
    }
    to->Bytes(5, message.bytes());
  }
  return Status::Ok();
}

Status AddNode(const OrtNode* node, Message* graph);

Status AddSubgraphs(const OrtNode* node, Message* to) {
  size_t count = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().Node_GetNumSubgraphs(node, &count)));
  std::vector<const OrtGraph*> graphs(count);
  std::vector<const char*> attributes(count);
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().Node_GetSubgraphs(node, graphs.data(), count, attributes.data())));
  for (size_t i = 0; i < count; ++i) {
    Message graph;
    graph.Bytes(2, attributes[i]);
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().Graph_GetNumNodes(graphs[i], &count)));
    std::vector<const OrtNode*> nodes(count);
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().Graph_GetNodes(graphs[i], nodes.data(), count)));
    for (const OrtNode* const inner : nodes) POLYOP_RETURN_IF_ERROR(AddNode(inner, &graph));
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().Graph_GetNumInitializers(graphs[i], &count)));
    std::vector<const OrtValueInfo*> values(count);
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().Graph_GetInitializers(graphs[i], values.data(), count)));
    for (const OrtValueInfo* const value : values) {
      const OrtValue* elements = nullptr;
      AnyTensor tensor;
      POLYOP_RETURN_IF_ERROR(FromOrt(Api().ValueInfo_GetInitializerValue(value, &elements)));
      POLYOP_RETURN_IF_ERROR(ReadTensor(elements, &tensor));
      graph.Bytes(5, Initializer(NameOf(value), tensor).bytes());
    }
    POLYOP_RETURN_IF_ERROR(EndsOf(graphs[i], true, &values));
    for (const OrtValueInfo* const value : values) {
      KnownTensor known;
      POLYOP_RETURN_IF_ERROR(ReadValue(value, 0, &known));
      graph.Bytes(11, Input(NameOf(value), known, true).bytes());
    }
    POLYOP_RETURN_IF_ERROR(EndsOf(graphs[i], false, &values));
    for (const OrtValueInfo* const value : values) graph.Bytes(12, Named(NameOf(value)).bytes());
    Message attribute = Named(attributes[i]);
    attribute.Bytes(6, graph.bytes());
    attribute.Integer(20, kGraph);
    to->Bytes(5, attribute.bytes());
    count = graphs.size();
  }
  return Status::Ok();
}

Status AddNode(const OrtNode* node, Message* graph) {
  Message message;
  std::vector<const OrtValueInfo*> values;
  POLYOP_RETURN_IF_ERROR(InputsOf(node, &values));
  for (const OrtValueInfo* const value : values) message.Bytes(1, NameOf(value));
  POLYOP_RETURN_IF_ERROR(OutputsOf(node, &values));
  for (const OrtValueInfo* const value : values) message.Bytes(2, NameOf(value));
  const char *domain = "", *type = "";
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().Node_GetDomain(node, &domain)));
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().Node_GetOperatorType(node, &type)));
  message.Bytes(4, type);
  message.Bytes(7, domain);
  POLYOP_RETURN_IF_ERROR(AddAttributes(node, &message));
  POLYOP_RETURN_IF_ERROR(AddSubgraphs(node, &message));
  graph->Bytes(1, message.bytes());
  return Status::Ok();
}

}  // namespace

std::string_view BytesOf(const AnyTensor& tensor) {
  return {static_cast<const char*>(tensor.data),
          static_cast<size_t>(tensor.shape.NumElements().value_or(0)) * SizeOf(tensor.dtype)};
}

Status ReadConstant(const GraphValue& value, AnyTensor* tensor) {
  for (const GraphNode* const node : value.readers) {
    std::vector<const OrtValueInfo*> infos;
    POLYOP_RETURN_IF_ERROR(ReadBy(static_cast<const OrtNode*>(node->of_runtime), &infos));
    const auto info = std::find_if(infos.begin(), infos.end(), [&](auto* i) { return NameOf(i) == value.name; });
    const OrtValue* elements = nullptr;
    if (info == infos.end()) continue;
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().ValueInfo_GetInitializerValue(*info, &elements)));
    return ReadTensor(elements, tensor);
  }
  return Unsupported("a constant without elements");
}

Status WriteModel(const OrtGraph* graph, const PatternMatch& match, const Cone& cone, std::string* model) {
  Message message, part;
  for (const GraphNode* const node : cone.nodes) {
    POLYOP_RETURN_IF_ERROR(AddNode(static_cast<const OrtNode*>(node->of_runtime), &part));
  }
  part.Bytes(2, "part");
  for (const GraphValue* const value : cone.constants) {
    AnyTensor tensor;
    POLYOP_RETURN_IF_ERROR(ReadConstant(*value, &tensor));
    part.Bytes(5, Initializer(value->name, tensor).bytes());
  }
  std::vector<const GraphValue*> inputs = match.inputs;
  inputs.insert(inputs.end(), cone.sized.begin(), cone.sized.end());
  for (const GraphValue* const value : inputs) {
    if (!value->known.dtype.has_value()) return Unsupported("an input of unknown type");
    part.Bytes(11, Input(value->name, value->known, false).bytes());
  }
  for (const GraphValue* const value : match.outputs) part.Bytes(12, Named(value->name).bytes());
  message.Integer(1, 8);  // ONNX's version of the format
  message.Bytes(7, part.bytes());
  std::vector<const char*> domains;
  std::vector<int64_t> versions;
  POLYOP_RETURN_IF_ERROR(OpsetsOf(graph, &domains, &versions));
  for (size_t i = 0; i < domains.size(); ++i) {
    Message opset;
    opset.Bytes(1, domains[i]);
    opset.Integer(2, versions[i]);
    message.Bytes(8, opset.bytes());
  }
  *model = message.bytes();
  return Status::Ok();
}

}  // namespace polyop::onnxruntime

#endif
