// SPDX-License-Identifier: Apache-2.0
#include "adapters/patterns.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "adapters/json_attributes.h"
#include "core/elements.h"
#include "core/guard.h"
#include "core/pattern.h"

namespace polyop {
namespace {

// A graph, and the elements of its constants.
struct FileGraph {
  Graph graph;
  std::deque<std::vector<std::byte>> elements;
};

std::optional<DType> TypeNamed(const Json& name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (name == NameOf(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  return std::nullopt;
}

void AddValue(const Json& json, FileGraph* file) {
  GraphValue& value = file->graph.values.emplace_back();
  value.name = json.at("name");
  value.is_constant = json.at("constant");
  value.is_output = json.at("output");
  value.known.present = true;
  value.known.dtype = TypeNamed(json.at("type"));
  if (json.at("shape").is_array() && json.at("shape").size() <= static_cast<size_t>(kMaxRank)) {
    value.known.shape = Shape(std::span<const int64_t>(json.at("shape").get<std::vector<int64_t>>()));
  }
  const Json& data = json.at("data");
  if (!data.is_array() || !value.known.dtype.has_value() || !value.known.shape.has_value()) return;
  auto& bytes = file->elements.emplace_back(data.size() * SizeOf(*value.known.dtype) + 1);
  for (size_t i = 0; i < data.size(); ++i) {
    if (value.known.dtype == DType::kI64) {  // of which doubles hold 53 bits
      const int64_t element = data[i].get<int64_t>();
      std::copy_n(reinterpret_cast<const std::byte*>(&element), sizeof element, bytes.data() + i * sizeof element);
    } else {
      WriteElement(*value.known.dtype, bytes.data(), static_cast<int64_t>(i), data[i].get<double>());
    }
  }
  value.known.constant = bytes.data();
}

std::vector<const GraphValue*> ValuesAt(const Json& indices, const Graph& graph) {
  std::vector<const GraphValue*> values;
  for (const Json& index : indices) {
    const auto i = index.get<int64_t>();
    values.push_back(i < 0 ? nullptr : &graph.values.at(static_cast<size_t>(i)));
  }
  return values;
}

void AddNode(const Json& json, Graph* graph) {
  GraphNode& node = graph->nodes.emplace_back();
  const std::string domain = json.at("domain"), type = json.at("type");
  node.type = domain.empty() || domain == "ai.onnx" ? type : domain + "::" + type;
  node.name = json.at("name");
  node.attributes = std::make_unique<JsonAttributes>(json.at("attributes"));
  node.inputs = ValuesAt(json.at("inputs"), *graph);
  node.outputs = ValuesAt(json.at("outputs"), *graph);
  node.captured = ValuesAt(json.at("captured"), *graph);
  for (const GraphValue* const value : node.outputs) {
    if (value != nullptr) const_cast<GraphValue*>(value)->producer = &node;
  }
  for (const auto* const read : {&node.inputs, &node.captured}) {
    for (const GraphValue* const value : *read) {
      if (value != nullptr) const_cast<GraphValue*>(value)->readers.push_back(&node);
    }
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
  FileGraph file;
  file.graph.opset = json.at("opset");
  file.graph.sizes_are_fixed = json.at("sizes_are_fixed");
  for (const Json& value : json.at("values")) AddValue(value, &file);
  for (const Json& node : json.at("nodes")) AddNode(node, &file.graph);
  const auto index = [](const auto& all, const auto* item) {
    return std::find_if(all.begin(), all.end(), [&](const auto& other) { return &other == item; }) - all.begin();
  };
  const auto indices = [&](const std::vector<const GraphValue*>& values) {
    Json list = Json::array();
    for (const GraphValue* const value : values) list.push_back(index(file.graph.values, value));
    return list;
  };
  Json matches = Json::array();
  for (const GraphNode& node : file.graph.nodes) {
    const std::optional<PatternMatch> match = FindAt(*pattern, file.graph, node);
    if (!match.has_value()) continue;
    matches.push_back({{"at", index(file.graph.nodes, match->at)},
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
