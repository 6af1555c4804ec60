// SPDX-License-Identifier: Apache-2.0
#include "adapters/onnxruntime/graph.h"

#if ORT_API_VERSION >= 24

#include <array>
#include <map>
#include <unordered_map>

namespace polyop::onnxruntime {
namespace {

constexpr int64_t kMaxConstant = 4096;      // the indices of a scatter belong to a pattern, weights do not
constexpr int64_t kMaxPositions = 1 << 22;  // of constants with more dimensions than weights have

class Reader {
 public:
  explicit Reader(Graph* graph, const Reader* outer = nullptr)
      : graph_(graph), outer_(outer), symbols_(outer != nullptr ? outer->symbols_ : &own_symbols_) {}

  Status AddNodes(const OrtGraph* graph) {
    size_t count = 0;
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().Graph_GetNumNodes(graph, &count)));
    std::vector<const OrtNode*> nodes(count);
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().Graph_GetNodes(graph, nodes.data(), count)));
    for (const OrtNode* const node : nodes) POLYOP_RETURN_IF_ERROR(AddNode(node));
    return Status::Ok();
  }

 private:
  Status AddNode(const OrtNode* node) {
    GraphNode& added = graph_->nodes.emplace_back();
    const char *domain = "", *type = "", *name = "";
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().Node_GetDomain(node, &domain)));
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().Node_GetOperatorType(node, &type)));
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().Node_GetName(node, &name)));
    const bool standard = std::string_view(domain).empty() || std::string_view(domain) == "ai.onnx";
    added.type = standard ? type : Concat(domain, "::", type);
    added.name = name;
    added.of_runtime = node;
    added.graph = graph_;
    added.attributes = std::make_unique<GraphAttributes>(node);
    std::vector<const OrtValueInfo*> values;
    POLYOP_RETURN_IF_ERROR(InputsOf(node, &values));
    POLYOP_RETURN_IF_ERROR(AddValues(values, &added.inputs, nullptr));
    POLYOP_RETURN_IF_ERROR(OutputsOf(node, &values));
    POLYOP_RETURN_IF_ERROR(AddValues(values, &added.outputs, &added));
    POLYOP_RETURN_IF_ERROR(CapturedBy(node, &values));
    POLYOP_RETURN_IF_ERROR(AddValues(values, &added.captured, nullptr));
    for (const auto* const read : {&added.inputs, &added.captured}) {
      for (const GraphValue* const value : *read) {
        if (value == nullptr || !by_name_.contains(value->name)) continue;  // omitted, or of an outer graph
        const_cast<GraphValue*>(value)->readers.push_back(&added);
      }
    }
    return AddSubgraphs(node, &added);
  }

  Status AddSubgraphs(const OrtNode* node, GraphNode* added) {
    size_t count = 0;
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().Node_GetNumSubgraphs(node, &count)));
    std::vector<const OrtGraph*> graphs(count);
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().Node_GetSubgraphs(node, graphs.data(), count, nullptr)));
    for (const OrtGraph* const graph : graphs) {
      Graph& read = *added->subgraphs.emplace_back(std::make_unique<Graph>());
      Reader reader(&read, this);
      std::vector<const OrtValueInfo*> values;
      POLYOP_RETURN_IF_ERROR(EndsOf(graph, true, &values));
      POLYOP_RETURN_IF_ERROR(reader.AddValues(values, &read.inputs, nullptr));
      POLYOP_RETURN_IF_ERROR(reader.AddNodes(graph));
      POLYOP_RETURN_IF_ERROR(EndsOf(graph, false, &values));
      POLYOP_RETURN_IF_ERROR(reader.AddValues(values, &read.outputs, nullptr));
    }
    return Status::Ok();
  }

  Status AddValues(const std::vector<const OrtValueInfo*>& infos, std::vector<const GraphValue*>* values,
                   const GraphNode* producer) {
    for (const OrtValueInfo* const info : infos) {
      GraphValue* value = nullptr;
      POLYOP_RETURN_IF_ERROR(AddValue(info, &value));
      if (producer != nullptr && value != nullptr) value->producer = producer;
      values->push_back(value);
    }
    return Status::Ok();
  }

  // Gives null for an omitted value.
  Status AddValue(const OrtValueInfo* info, GraphValue** added) {
    const char* name = "";
    if (info != nullptr) POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetValueInfoName(info, &name)));
    if (*name == '\0') return Status::Ok();
    for (const Reader* reader = this; reader != nullptr; reader = reader->outer_) {
      const auto known = reader->by_name_.find(name);
      if (known != reader->by_name_.end()) return *added = known->second, Status::Ok();
    }
    GraphValue*& value = by_name_[name];
    *added = value = &graph_->values.emplace_back();
    value->name = name;
    POLYOP_RETURN_IF_ERROR(ReadValue(info, kMaxConstant, &value->known));
    if (value->rank() > 5) POLYOP_RETURN_IF_ERROR(ReadValue(info, kMaxPositions, &value->known));
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().ValueInfo_IsConstantInitializer(info, &value->is_constant)));
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().ValueInfo_IsGraphOutput(info, &value->is_output)));
    return NameExtents(info, value);
  }

  // Gives unknown extents of the same name the same number.
  Status NameExtents(const OrtValueInfo* info, GraphValue* value) {
    std::optional<Shape>& shape = value->known.shape;
    if (!shape.has_value() || shape->NumElements().has_value()) return Status::Ok();
    const OrtTypeInfo* type = nullptr;
    const OrtTensorTypeAndShapeInfo* tensor = nullptr;
    std::array<const char*, kMaxRank> names{};
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetValueInfoTypeInfo(info, &type)));
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().CastTypeInfoToTensorInfo(type, &tensor)));
    const size_t rank = static_cast<size_t>(shape->rank());
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetSymbolicDimensions(tensor, names.data(), rank)));
    for (size_t d = 0; d < rank; ++d) {
      int64_t& extent = (*shape)[static_cast<int>(d)];
      if (extent >= 0 || names[d] == nullptr || *names[d] == '\0') continue;
      extent =
          symbols_->try_emplace(names[d], kUnknownExtent - 1 - static_cast<int64_t>(symbols_->size())).first->second;
    }
    return Status::Ok();
  }

  Graph* graph_;
  const Reader* outer_;
  std::unordered_map<std::string, GraphValue*> by_name_;
  std::map<std::string, int64_t> own_symbols_;
  std::map<std::string, int64_t>* const symbols_;  // of all graphs
};

}  // namespace

Status ReadGraph(const OrtGraph* graph, Graph* read) {
  POLYOP_RETURN_IF_ERROR(Reader(read).AddNodes(graph));
  std::vector<const char*> domains;
  std::vector<int64_t> versions;
  POLYOP_RETURN_IF_ERROR(OpsetsOf(graph, &domains, &versions));
  for (size_t i = 0; i < domains.size(); ++i) {
    if (*domains[i] == '\0') read->opset = static_cast<int>(versions[i]);
  }
  return Status::Ok();
}

}  // namespace polyop::onnxruntime

#endif
