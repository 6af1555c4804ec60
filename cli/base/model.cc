// SPDX-License-Identifier: Apache-2.0
#include "cli/base/model.h"

#include <cmath>
#include <cstring>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/text.h"
#include "nlohmann/json.hpp"

namespace polyop::cli {
namespace {

constexpr const char* kElementNames[] = {"undefined", "float32", "uint8",     "int8",       "uint16",  "int16",
                                         "int32",     "int64",   "string",    "bool",       "float16", "float64",
                                         "uint32",    "uint64",  "complex64", "complex128", "bfloat16"};

std::string ElementName(int type) {
  const bool known = type >= 0 && type < static_cast<int>(std::size(kElementNames));
  return known ? kElementNames[type] : "type " + std::to_string(type);
}

template <class Items>
std::string ListText(const Items& items) {
  std::string text = "[";
  int shown = 0;
  for (const auto& item : items) {
    if (shown) text += ", ";
    if (++shown > 8) return text + "…]";
    std::ostringstream one;
    one << item;
    text += one.str();
  }
  return text + "]";
}

void VisitGraph(const onnx::GraphProto& graph, const std::function<void(const onnx::NodeProto&)>& visit);

void VisitNode(const onnx::NodeProto& node, const std::function<void(const onnx::NodeProto&)>& visit) {
  visit(node);
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) VisitGraph(attribute.g(), visit);
    for (const onnx::GraphProto& graph : attribute.graphs()) VisitGraph(graph, visit);
  }
}

void VisitGraph(const onnx::GraphProto& graph, const std::function<void(const onnx::NodeProto&)>& visit) {
  for (const onnx::NodeProto& node : graph.node()) VisitNode(node, visit);
}

// Returns the node for adapters/resolve.h. Attributes whose values come from the call of a function have none.
nlohmann::json ToJson(const onnx::NodeProto& node) {
  nlohmann::json attributes = nlohmann::json::object();
  const auto real = [](double value) -> nlohmann::json {
    if (std::isfinite(value)) return value;
    return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
  };
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    nlohmann::json& value = attributes[attribute.name()];
    switch (attribute.type()) {
      case onnx::AttributeProto::INT: value = attribute.i(); break;
      case onnx::AttributeProto::FLOAT: value = real(attribute.f()); break;
      case onnx::AttributeProto::STRING: value = attribute.s(); break;
      case onnx::AttributeProto::INTS: value = attribute.ints(); break;
      case onnx::AttributeProto::FLOATS:
        for (const float element : attribute.floats()) value.push_back(real(element));
        break;
      default: break;
    }
    if (!attribute.ref_attr_name().empty()) value = nullptr;
  }
  return {{"domain", node.domain()}, {"type", node.op_type()}, {"attributes", attributes}};
}

bool IsOrtFormat(const std::vector<uint8_t>& bytes) {
  constexpr std::string_view kIdentifier = "ORTM";  // of the flatbuffer
  return bytes.size() >= 8 && std::memcmp(&bytes[4], kIdentifier.data(), kIdentifier.size()) == 0;
}

}  // namespace

onnx::ModelProto LoadModel(const std::string& path) {
  const std::vector<uint8_t> bytes = ReadFile(path);
  onnx::ModelProto model;
  google::protobuf::io::ArrayInputStream raw(bytes.data(), static_cast<int>(std::min<size_t>(bytes.size(), INT32_MAX)));
  google::protobuf::io::CodedInputStream stream(&raw);
  stream.SetRecursionLimit(200);
  const bool parsed =
      bytes.size() <= INT32_MAX && model.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
  if (IsOrtFormat(bytes)) {
    throw Failure(kBadFile, "'" + path + "': expected an ONNX file, got one in ONNX Runtime's own format",
                  "`polyop run` and `polyop bench` take it; for all else, take the ONNX file that it was made of");
  }
  // Many files parse as a protobuf message, but only models have a version and a graph.
  if (!parsed || !model.has_graph() || model.ir_version() <= 0) {
    throw Failure(kBadFile, "'" + path + "' is not an ONNX model, or is damaged",
                  "is it complete? Export it again, or check it with onnx.checker.check_model");
  }
  return model;
}

void ForEachNode(const onnx::ModelProto& model, const std::function<void(const onnx::NodeProto&)>& visit) {
  VisitGraph(model.graph(), visit);
  for (const onnx::FunctionProto& function : model.functions()) {
    for (const onnx::NodeProto& node : function.node()) VisitNode(node, visit);
  }
}

std::string TypeText(const onnx::TypeProto& type) {
  if (type.has_sequence_type()) return "sequence";
  if (type.has_map_type()) return "map";
  if (type.has_optional_type()) return "optional";
  if (!type.has_tensor_type()) return "unknown";
  const auto& tensor = type.tensor_type();
  std::string text = ElementName(tensor.elem_type());
  if (!tensor.has_shape()) return text + "[…]";
  text += "[";
  for (int i = 0; i < tensor.shape().dim_size(); ++i) {
    const auto& dim = tensor.shape().dim(i);
    if (i) text += ", ";
    text += dim.has_dim_value() ? std::to_string(dim.dim_value()) : dim.has_dim_param() ? dim.dim_param() : "?";
  }
  return text + "]";
}

std::string TypeText(const onnx::TensorProto& tensor) {
  return ElementName(tensor.data_type()) + ListText(tensor.dims());
}

std::string AttributeText(const onnx::AttributeProto& a) {
  switch (a.type()) {
    case onnx::AttributeProto::INT: return std::to_string(a.i());
    case onnx::AttributeProto::FLOAT: return Concat(a.f());
    case onnx::AttributeProto::STRING: return a.s().size() > 40 ? a.s().substr(0, 40) + "…" : a.s();
    case onnx::AttributeProto::INTS: return ListText(a.ints());
    case onnx::AttributeProto::FLOATS: return ListText(a.floats());
    case onnx::AttributeProto::STRINGS: return ListText(a.strings());
    case onnx::AttributeProto::TENSOR: return "tensor " + TypeText(a.t());
    case onnx::AttributeProto::GRAPH: return "graph";
    default: return "…";
  }
}

std::string Metadata(const onnx::ModelProto& model, const std::string& key) {
  for (const auto& entry : model.metadata_props()) {
    if (entry.key() == key) return entry.value();
  }
  return "";
}

bool IsStandardDomain(const std::string& domain) {
  return domain.empty() || domain == "ai.onnx" || domain == "ai.onnx.ml" || domain == "ai.onnx.training" ||
         domain == "ai.onnx.preview.training";
}

bool IsStandard(const onnx::NodeProto& node) {
  return IsStandardDomain(node.domain()) && FindOperator(node.domain(), node.op_type()) == nullptr;
}

Resolution Resolve(const onnx::NodeProto& node) {
  const OperatorInfo* const first = FindOperator(node.domain(), node.op_type());
  if (first == nullptr) return {};
  const std::string request = ToJson(node).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const nlohmann::json reply = nlohmann::json::parse(first->resolve_node(request.c_str()));
  Resolution found;
  found.error = reply.value("error", "");
  for (const OperatorInfo& op : Operators()) {
    if (op.package != first->package || reply.at("operator") != op.name) continue;
    found.op = &op;
    found.node = &op.nodes[reply.at("node").get<size_t>()];
  }
  return found;
}

const OperatorInfo* ResolveNode(const onnx::NodeProto& node) { return Resolve(node).op; }

std::string TypeOf(const onnx::NodeProto& node) {
  return node.domain().empty() ? node.op_type() : node.domain() + "::" + node.op_type();
}

bool IsRuntimeDomain(const std::string& domain) { return domain.rfind("com.microsoft", 0) == 0; }

bool IsLocalFunction(const onnx::ModelProto& model, const onnx::NodeProto& node) {
  for (const onnx::FunctionProto& function : model.functions()) {
    if (function.domain() == node.domain() && function.name() == node.op_type()) return true;
  }
  return false;
}

}  // namespace polyop::cli
