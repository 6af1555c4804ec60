// SPDX-License-Identifier: Apache-2.0
#include "adapters/patterns.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "adapters/json_attributes.h"
#include "core/guard.h"
#include "core/pattern.h"

namespace polyop {
namespace {

std::optional<DType> TypeNamed(const Json& name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (name == NameOf(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  return std::nullopt;
}

void AddValue(const Json& json, Graph* graph) {
  GraphValue& value = graph->values.emplace_back();
  value.name = json.at("name");
  value.is_constant = json.at("constant");
  value.is_output = json.at("output");
  value.known.present = true;
  value.known.dtype = TypeNamed(json.at("type"));
  if (json.at("shape").is_array() && json.at("shape").size() <= static_cast<size_t>(kMaxRank)) {
    value.known.shape = Shape(std::span<const int64_t>(json.at("shape").get<std::vector<int64_t>>()));
  }
  const Json& data = json.at("data");
  if (!data.is_number() || !value.known.dtype.has_value() || !value.known.shape.has_value()) return;
  value.known.constant = reinterpret_cast<const void*>(data.get<uintptr_t>());
}

std::vector<const GraphValue*> ValuesAt(const Json& indices, const std::deque<GraphValue>& all) {
  std::vector<const GraphValue*> values;
  for (const Json& index : indices) {
    const auto i = index.get<int64_t>();
    values.push_back(i < 0 ? nullptr : &all.at(static_cast<size_t>(i)));
  }
  return values;
}

// outer: the node whose subgraph the graph is, if it is one.
void AddNode(const Json& json, const std::deque<GraphValue>& values, const GraphNode* outer, Graph* graph) {
  GraphNode& node = graph->nodes.emplace_back();
  const std::string domain = json.at("domain"), type = json.at("type");
  node.type = domain.empty() || domain == "ai.onnx" ? type : domain + "::" + type;
  node.name = json.at("name");
  node.graph = graph;
  node.attributes = std::make_unique<JsonAttributes>(json.at("attributes"));
  node.inputs = ValuesAt(json.at("inputs"), values);
  node.outputs = ValuesAt(json.at("outputs"), values);
  node.captured = ValuesAt(json.at("captured"), values);
  for (const GraphValue* const value : node.outputs) {
    if (value != nullptr) const_cast<GraphValue*>(value)->producer = &node;
  }
  for (const auto* const read : {&node.inputs, &node.captured}) {
    for (const GraphValue* const value : *read) {
      const auto is_in = [&](const auto& all) { return std::find(all.begin(), all.end(), value) != all.end(); };
      if (value == nullptr || (outer != nullptr && (is_in(outer->inputs) || is_in(outer->captured)))) continue;
      const_cast<GraphValue*>(value)->readers.push_back(&node);
    }
  }
  for (const Json& inner : json.at("subgraphs")) {
    Graph& subgraph = *node.subgraphs.emplace_back(std::make_unique<Graph>());
    subgraph.inputs = ValuesAt(inner.at("inputs"), values);
    subgraph.outputs = ValuesAt(inner.at("outputs"), values);
    for (const Json& inner_node : inner.at("nodes")) AddNode(inner_node, values, &node, &subgraph);
  }
}

Json ToJson(const std::vector<std::pair<std::string, AttrValue>>& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) {
    switch (value.type) {
      case AttrType::kInt: json[name] = value.ints[0]; break;
      case AttrType::kFloat: json[name] = value.floats[0]; break;
      case AttrType::kString: json[name] = value.text; break;
      case AttrType::kInts: json[name] = value.ints; break;
      case AttrType::kFloats: json[name] = value.floats; break;
    }
  }
  return json;
}

Json Find(const std::string& name, const Json& json) {
  const auto patterns = Patterns();
  const auto pattern = std::find_if(patterns.begin(), patterns.end(), [&](const Pattern& p) { return name == p.name; });
  if (pattern == patterns.end()) return {{"error", Concat("expected the name of a pattern, got '", name, "'")}};
  Graph graph;
  graph.opset = json.at("opset");
  graph.sizes_are_fixed = json.at("sizes_are_fixed");
  for (const Json& value : json.at("values")) AddValue(value, &graph);
  for (const Json& node : json.at("nodes")) AddNode(node, graph.values, nullptr, &graph);
  FindExtents(&graph);
  const auto index = [](const auto& all, const auto* item) {
    return std::find_if(all.begin(), all.end(), [&](const auto& other) { return &other == item; }) - all.begin();
  };
  const auto indices = [&](const std::vector<const GraphValue*>& values) {
    Json list = Json::array();
    for (const GraphValue* const value : values) list.push_back(index(graph.values, value));
    return list;
  };
  Json matches = Json::array();
  for (const GraphNode& node : graph.nodes) {
    const std::optional<PatternMatch> match = FindAt(*pattern, graph, node);
    if (!match.has_value()) continue;
    matches.push_back({{"at", index(graph.nodes, match->at)},
                       {"inputs", indices(match->inputs)},
                       {"outputs", indices(match->outputs)},
                       {"node", match->node},
                       {"attributes", ToJson(match->attributes)},
                       {"parameters", ToJson(match->parameters)},
                       {"work", match->work},
                       {"min_work", pattern->min_work},
                       {"refused", match->refused}});
  }
  return {{"matches", matches}};
}

}  // namespace
}  // namespace polyop

extern "C" const char* polyop_find_pattern(const char* pattern, const char* graph) {
  using polyop::Json;
  static thread_local std::string reply;
  const auto write = [](const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); };
  reply = polyop::Guarded([&] { return write(polyop::Find(pattern, Json::parse(graph))); },
                          [&](const char* message) { return write({{"error", message}}); });
  return reply.c_str();
}
