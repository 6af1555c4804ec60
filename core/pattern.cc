// SPDX-License-Identifier: Apache-2.0
#include "core/pattern.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <unordered_set>

#include "core/elements.h"

namespace polyop {
namespace {

std::vector<Pattern>& Registered() {
  static std::vector<Pattern> patterns;
  return patterns;
}

class NamedAttributes : public AttrSource {
 public:
  explicit NamedAttributes(const PatternMatch& match) : match_(match) {}
  bool Get(const char* name, AttrValue* value) override {
    for (const auto& [known, given] : match_.attributes) {
      if (known == name) return *value = given, true;
    }
    return false;
  }

 private:
  const PatternMatch& match_;
};

bool IsOneOf(std::string_view type, std::initializer_list<std::string_view> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

// Returns true for operators that only move elements of their first input.
bool Moves(const GraphNode& node) {
  return node.Is(
      {"Flatten", "Gather", "GatherND", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"});
}

}  // namespace

int64_t GraphNode::Int(const char* attribute, int64_t otherwise) const {
  AttrValue value;
  return attributes->Get(attribute, &value) && value.type == AttrType::kInt ? value.ints[0] : otherwise;
}

std::string GraphNode::Text(const char* attribute, const char* otherwise) const {
  AttrValue value;
  return attributes->Get(attribute, &value) && value.type == AttrType::kString ? value.text : otherwise;
}

bool GraphNode::Is(std::initializer_list<std::string_view> types) const { return IsOneOf(type, types); }

int64_t PatternMatch::Parameter(std::string_view name) const {
  const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const auto& p) { return p.first == name; });
  return found == parameters.end() ? 0 : found->second.ints[0];
}

std::span<const Pattern> Patterns() { return Registered(); }

bool AddPattern(Pattern pattern) {
  Registered().push_back(std::move(pattern));
  return true;
}

std::unique_ptr<StandardKernel> NodeKernelOf(const PatternMatch& match, const std::vector<KnownTensor>& inputs) {
  std::vector<KnownTensor> outputs;
  for (const GraphValue* const value : match.outputs) outputs.push_back(value->known);
  return NodeKernelOf(match, inputs, outputs);
}

std::unique_ptr<StandardKernel> NodeKernelOf(const PatternMatch& match, const std::vector<KnownTensor>& inputs,
                                             const std::vector<KnownTensor>& outputs) {
  NamedAttributes attributes(match);
  return OperatorCall::OfNode({0, 0, attributes, inputs, outputs}, match.node);
}

std::unique_ptr<StandardKernel> NodeKernelOf(const PatternMatch& match) {
  std::vector<KnownTensor> inputs;
  for (const GraphValue* const value : match.inputs) inputs.push_back(value->known);
  return NodeKernelOf(match, inputs);
}

std::unique_ptr<StandardKernel> KernelOf(const Pattern& pattern, const PatternMatch& match) {
  return pattern.make == nullptr ? NodeKernelOf(match) : pattern.make(match);
}

std::optional<PatternMatch> FindAt(const Pattern& pattern, const Graph& graph, const GraphNode& node) {
  if (std::find(pattern.ends.begin(), pattern.ends.end(), node.type) == pattern.ends.end()) return std::nullopt;
  std::optional<PatternMatch> found;
  try {
    found = pattern.match(graph, node);
  } catch (const std::exception& error) {  // models have nodes that no pattern foresees
    found = PatternMatch();
    found->refused = Concat("the pattern failed: ", error.what());
  }
  if (found.has_value() && found->at == nullptr) found->at = &node;
  return found;
}

namespace {

// Returns true if the value is computed from `ends` and constants alone.
bool IsComputedFrom(const std::unordered_set<const GraphValue*>& ends, const GraphValue* value) {
  constexpr size_t kMaxVisited = 1000;
  std::unordered_set<const GraphValue*> seen;
  std::vector<const GraphValue*> open = {value};
  while (!open.empty()) {
    value = open.back();
    open.pop_back();
    if (value == nullptr || value->is_constant || ends.contains(value) || !seen.insert(value).second) continue;
    if (value->producer == nullptr || seen.size() > kMaxVisited) return false;
    open.insert(open.end(), value->producer->inputs.begin(), value->producer->inputs.end());
    open.insert(open.end(), value->producer->captured.begin(), value->producer->captured.end());
  }
  return true;
}

}  // namespace

std::optional<Cone> ConeOf(const Graph& graph, const PatternMatch& match) {
  const std::unordered_set<const GraphValue*> ends(match.inputs.begin(), match.inputs.end());
  std::unordered_set<const GraphNode*> nodes;
  std::unordered_set<const GraphValue*> constants, sized;
  std::vector<const GraphValue*> open(match.outputs.begin(), match.outputs.end());
  while (!open.empty()) {
    const GraphValue* const value = open.back();
    open.pop_back();
    if (value == nullptr || ends.contains(value)) continue;
    if (value->is_constant) {
      constants.insert(value);
      continue;
    }
    if (value->producer == nullptr) return std::nullopt;
    if (!nodes.insert(value->producer).second) continue;
    const GraphNode* const size = Producer(value, {"Shape", "Size"});
    if (size != nullptr && !IsComputedFrom(ends, size->input(0))) {
      sized.insert(size->input(0));
      continue;
    }
    open.insert(open.end(), value->producer->inputs.begin(), value->producer->inputs.end());
    open.insert(open.end(), value->producer->captured.begin(), value->producer->captured.end());
  }
  Cone cone;
  for (const GraphNode& node : graph.nodes) {
    if (nodes.contains(&node)) cone.nodes.push_back(&node);
  }
  cone.constants.assign(constants.begin(), constants.end());
  cone.sized.assign(sized.begin(), sized.end());
  return cone;
}

std::vector<const GraphNode*> ReplaceableNodes(const PatternMatch& match, const Cone& cone) {
  const std::unordered_set<const GraphValue*> inputs(match.inputs.begin(), match.inputs.end());
  const std::unordered_set<const GraphValue*> outputs(match.outputs.begin(), match.outputs.end());
  std::unordered_set<const GraphNode*> replaced;
  std::unordered_set<const GraphValue*> read;
  const auto is_inner = [&](const GraphValue* value) {
    if (value == nullptr || outputs.contains(value)) return true;
    const auto& readers = value->readers;
    return !value->is_output &&
           std::all_of(readers.begin(), readers.end(), [&](auto* r) { return replaced.contains(r); });
  };
  for (auto node = cone.nodes.rbegin(); node != cone.nodes.rend(); ++node) {
    if (!std::all_of((*node)->outputs.begin(), (*node)->outputs.end(), is_inner)) continue;
    replaced.insert(*node);
    read.insert((*node)->inputs.begin(), (*node)->inputs.end());
    read.insert((*node)->captured.begin(), (*node)->captured.end());
  }
  std::vector<const GraphNode*> nodes;
  for (const GraphNode* const node : cone.nodes) {
    if (replaced.contains(node)) nodes.push_back(node);
  }
  const auto is_replaced = [&](const GraphValue* v) {
    return v->producer != nullptr && replaced.contains(v->producer);
  };
  // An input that depends on one of several outputs would make a cycle.
  std::vector<const GraphValue*> open(match.inputs.begin(), match.inputs.end());
  open.insert(open.end(), cone.sized.begin(), cone.sized.end());
  std::unordered_set<const GraphValue*> seen(open.begin(), open.end());
  while (match.outputs.size() > 1 && !open.empty()) {
    const GraphValue* const value = open.back();
    open.pop_back();
    if (is_replaced(value)) return {};
    if (value->producer == nullptr) continue;
    for (const auto* const values : {&value->producer->inputs, &value->producer->captured}) {
      for (const GraphValue* const before : *values) {
        if (before != nullptr && seen.insert(before).second) open.push_back(before);
      }
    }
  }
  const bool reads_all = std::all_of(inputs.begin(), inputs.end(), [&](auto* v) { return read.contains(v); });
  const bool makes_all = std::all_of(outputs.begin(), outputs.end(), is_replaced);
  return reads_all && makes_all ? nodes : std::vector<const GraphNode*>();
}

const GraphNode* Producer(const GraphValue* value, std::initializer_list<std::string_view> types) {
  const GraphNode* const node = value != nullptr ? value->producer : nullptr;
  return node != nullptr && node->Is(types) ? node : nullptr;
}

std::vector<const GraphValue*> Trail(const GraphValue* value) {
  std::vector<const GraphValue*> values = {value};
  while (const GraphNode* const node = value == nullptr ? nullptr : value->producer) {
    if (!Moves(*node) || node->input(0) == nullptr) break;
    values.push_back(value = node->inputs[0]);
  }
  return values;
}

std::vector<const GraphValue*> MovedOn(const GraphValue* value, int steps) {
  std::vector<const GraphValue*> values;
  for (int i = 0; i < steps && !value->is_output; ++i) {
    std::vector<const GraphNode*> readers = value->readers;
    std::erase_if(readers, [](const GraphNode* reader) { return reader->Is({"Shape", "Size"}); });
    if (readers.size() != 1 || !Moves(*readers[0])) break;
    values.push_back(value = readers[0]->outputs[0]);
  }
  return values;
}

std::optional<std::pair<const GraphValue*, double>> Operands(const GraphNode* node) {
  if (node == nullptr || node->inputs.size() != 2) return std::nullopt;
  for (const size_t i : {0, 1}) {
    const std::optional<double> number = Scalar(node->inputs[1 - i]);
    if (number.has_value()) return std::pair(node->inputs[i], *number);
  }
  return std::nullopt;
}

std::optional<std::vector<double>> Numbers(const GraphValue* value) {
  if (value == nullptr || value->known.constant == nullptr || !value->known.dtype.has_value()) return std::nullopt;
  std::vector<double> numbers(static_cast<size_t>(value->known.shape->NumElements().value_or(0)));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = ReadElement(*value->known.dtype, value->known.constant, static_cast<int64_t>(i));
  }
  return numbers;
}

std::optional<double> Scalar(const GraphValue* value) {
  const auto numbers = Numbers(value);
  return numbers.has_value() && numbers->size() == 1 ? std::optional((*numbers)[0]) : std::nullopt;
}

std::optional<double> FilledWith(const GraphValue* value) {
  if (const auto numbers = Numbers(value); numbers.has_value() && !numbers->empty()) {
    const bool is_filled = std::count(numbers->begin(), numbers->end(), numbers->front()) == std::ssize(*numbers);
    return is_filled ? std::optional(numbers->front()) : std::nullopt;
  }
  const GraphNode* const node = Producer(value, {"ConstantOfShape", "Expand", "Cast", "Identity"});
  if (node == nullptr) return std::nullopt;
  if (node->type != "ConstantOfShape") return FilledWith(node->input(0));
  AttrValue number;
  if (!node->attributes->Get("value", &number)) return 0;
  return number.type == AttrType::kFloat ? number.floats[0] : static_cast<double>(number.ints[0]);
}

bool IsRead(const GraphValue* value) { return value != nullptr && (value->is_output || !value->readers.empty()); }

bool SameShape(const GraphValue* a, const GraphValue* b) {
  if (a == nullptr || b == nullptr || a->shape() == nullptr || b->shape() == nullptr) return false;
  const auto& extents = a->shape()->span();
  return *a->shape() == *b->shape() && std::find(extents.begin(), extents.end(), kUnknownExtent) == extents.end();
}

const Graph& BodyOf(const GraphNode& loop) { return *loop.subgraphs.at(0); }

std::vector<LoopState> StatesOf(const GraphNode& loop) {
  const Graph& body = BodyOf(loop);
  const bool is_loop = loop.type == "Loop";  // whose body has the step's number and the condition
  const size_t first = is_loop ? 2 : 0;
  const auto sliced = static_cast<size_t>(is_loop ? 0 : loop.Int("num_scan_inputs", 0));
  std::vector<LoopState> states;
  for (size_t i = first; i + sliced < loop.inputs.size(); ++i) {
    if (loop.inputs[i] == nullptr) throw std::invalid_argument("a loop omits the first value of a state");
    states.push_back({loop.inputs[i], body.inputs.at(i), body.outputs.at(i - first / 2), loop.outputs.at(i - first)});
  }
  return states;
}

std::vector<std::pair<const GraphValue*, const GraphValue*>> ResultsOfSteps(const GraphNode& loop) {
  std::vector<std::pair<const GraphValue*, const GraphValue*>> results;
  const size_t conditions = loop.type == "Loop" ? 1 : 0;
  for (size_t i = StatesOf(loop).size(); i < loop.outputs.size(); ++i) {
    results.emplace_back(BodyOf(loop).outputs.at(i + conditions), loop.outputs[i]);
  }
  return results;
}

}  // namespace polyop
