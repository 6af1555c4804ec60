// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/patterns/suppression_loops.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <unordered_set>

#include "core/elements.h"

namespace polyop {
namespace {

using Values = std::vector<const GraphValue*>;
using Nodes = std::vector<const GraphNode*>;

constexpr size_t kMaxVisited = 200;
constexpr size_t kMaxBetween = 1000;

// Removes slices of all boxes: exporters write boxes[:, 0] as a slice of all boxes, then of a column.
const GraphValue* Unsliced(const GraphValue* value) {
  while (const GraphNode* const node = Producer(value, {"Slice"})) {
    const auto starts = Numbers(node->input(1)), ends = Numbers(node->input(2)), steps = Numbers(node->input(4));
    const auto is = [](const auto& numbers, auto fits) {
      return numbers.has_value() && std::all_of(numbers->begin(), numbers->end(), fits);
    };
    const bool takes_all = is(starts, [](double start) { return start == 0; }) &&
                           is(ends, [](double end) { return end >= std::numeric_limits<int32_t>::max(); });
    const bool is_forward = node->input(4) == nullptr || is(steps, [](double step) { return step == 1; });
    if (!is_forward || (!takes_all && !SameShape(node->input(0), value))) break;
    value = node->input(0);
  }
  return value;
}

// The comparison of a quotient with a number.
struct Comparison {
  std::string_view how;
  double number = 0;
  bool is_protected = false;  // the divisor from being 0
  auto operator<=>(const Comparison&) const = default;
};

// Returns the value before moves and casts: exporters write the comparison of an f16 quotient in f32.
const GraphValue* Moved(const GraphValue* value) {
  value = Trail(value).back();
  while (const GraphNode* const node = Producer(value, {"Cast"})) value = Trail(node->input(0)).back();
  return value;
}

std::optional<Comparison> ComparisonOf(const GraphNode& node) {
  if (Exchanged(node.type).empty() || node.inputs.size() != 2) return std::nullopt;
  const size_t of_number = Scalar(node.inputs[1]).has_value() ? 1 : 0;
  const auto number = Scalar(node.inputs[of_number]);
  const GraphNode* const quotient = Producer(Moved(node.inputs[1 - of_number]), {"Div"});
  if (!number.has_value() || quotient == nullptr || !(*number >= 0 && *number <= 1)) return std::nullopt;
  const GraphNode* const divisor = Producer(quotient->input(1), {"Add", "Max", "Clip"});
  const bool is_protected = divisor != nullptr && std::any_of(divisor->inputs.begin() + 1, divisor->inputs.end(),
                                                              [](auto* v) { return Scalar(v).value_or(0) > 0; });
  return Comparison{of_number == 1 ? std::string_view(node.type) : Exchanged(node.type), *number, is_protected};
}

bool AddsRealOne(const GraphNode* node) {
  return node->type == "Add" && std::any_of(node->inputs.begin(), node->inputs.end(), [](const GraphValue* value) {
           return value != nullptr && value->known.dtype.has_value() && IsReal(*value->known.dtype) &&
                  Scalar(value) == 1;
         });
}

}  // namespace

void SuppressionRule::AddTo(PatternMatch* match) const {
  match->node = "mmcv::NonMaxSuppression";
  match->attributes = {{"iou_threshold", AttrValue::Float(threshold)}, {"offset", AttrValue::Int(offset)}};
  match->parameters.emplace_back("threshold", AttrValue::Float(threshold));
  match->parameters.emplace_back("offset", AttrValue::Int(offset));
  match->parameters.emplace_back("removes_empty", AttrValue::Int(removes_empty));
}

bool MayBeEqual(int64_t a, int64_t b) { return a == b || a == kUnknownExtent || b == kUnknownExtent; }

int64_t SymbolOf(int64_t extent) { return extent == kUnknownExtent ? std::numeric_limits<int64_t>::min() : extent; }

std::string_view Exchanged(std::string_view comparison) {
  for (const auto& [a, b] : {std::pair<std::string_view, std::string_view>("Greater", "Less"),
                             std::pair<std::string_view, std::string_view>("GreaterOrEqual", "LessOrEqual")}) {
    if (comparison == a) return b;
    if (comparison == b) return a;
  }
  return "";
}

Values ReadBy(const GraphNode& node) {
  Values values = node.inputs;
  values.insert(values.end(), node.captured.begin(), node.captured.end());
  std::erase(values, nullptr);
  return values;
}

Nodes WithInner(const Nodes& nodes) {
  Nodes all;
  for (const GraphNode* const node : nodes) {
    all.push_back(node);
    for (const auto& subgraph : node->subgraphs) {
      Nodes inner;
      for (const GraphNode& of_subgraph : subgraph->nodes) inner.push_back(&of_subgraph);
      inner = WithInner(inner);
      all.insert(all.end(), inner.begin(), inner.end());
    }
  }
  return all;
}

std::optional<Nodes> NodesBetween(const Values& inputs, const Values& outputs) {
  Nodes nodes;
  Values open = outputs;
  std::unordered_set<const GraphValue*> seen(inputs.begin(), inputs.end());
  while (!open.empty()) {
    const GraphValue* const value = open.back();
    open.pop_back();
    if (!seen.insert(value).second || value->is_constant || Producer(value, {"Shape", "Size"}) != nullptr) continue;
    if (value->producer == nullptr || nodes.size() == kMaxBetween) return std::nullopt;
    if (std::find(nodes.begin(), nodes.end(), value->producer) != nodes.end()) continue;
    nodes.push_back(value->producer);
    const Values read = ReadBy(*value->producer);
    open.insert(open.end(), read.begin(), read.end());
  }
  return nodes;
}

const GraphValue* BoxesOf(const GraphNode& loop, int64_t count, const GraphValue* other) {
  Values open = ReadBy(loop);
  std::unordered_set<const GraphValue*> seen = {other};
  for (size_t i = 0; i < open.size() && seen.size() < kMaxVisited; ++i) {
    const GraphValue* const value = open[i];
    if (!seen.insert(value).second) continue;
    const auto dtype = value->known.dtype;
    const Shape* const shape = value->shape();
    if (shape != nullptr && shape->rank() == 2 && MayBeEqual((*shape)[0], count) && (*shape)[1] >= 4 &&
        (*shape)[1] <= 6 && dtype != DType::kI64 && dtype != DType::kBool) {
      return Unsliced(value);
    }
    const GraphNode* const node = value->producer;
    if (node == nullptr || node->graph != loop.graph || node->Is({"Shape", "Size"})) continue;
    const Values read = ReadBy(*node);
    open.insert(open.end(), read.begin(), read.end());
  }
  return nullptr;
}

const GraphValue* NumberItself(const GraphValue* value) {
  while (const GraphNode* const node = Producer(value, {"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"})) {
    value = node->input(0);
  }
  return value;
}

bool IsLength(const Graph& graph, const GraphValue* steps, int64_t count) {
  if (steps == nullptr || count == kUnknownExtent) return false;
  const auto number = Scalar(steps);
  const bool is_count = number == static_cast<double>(count) || steps->integers == std::vector<int64_t>{count};
  return is_count &&
         (graph.sizes_are_fixed || Producer(Trail(NumberItself(steps)).back(), {"Shape", "Size"}) != nullptr);
}

std::set<int64_t> ComparedLengths(const GraphNode& loop) {
  std::set<int64_t> lengths;
  for (const GraphNode* const node : WithInner({&loop})) {
    if (Exchanged(node->type).empty()) continue;
    for (const GraphValue* const value : node->inputs) {
      const auto numbers = value->known.dtype.has_value() && !IsReal(*value->known.dtype) && value->is_constant
                               ? Numbers(value)
                               : std::nullopt;
      for (const double number : numbers.value_or(std::vector<double>())) {
        if (number != 0 && number != 1) lengths.insert(static_cast<int64_t>(number));
      }
    }
  }
  return lengths;
}

bool IsUnlimited(const GraphValue* steps) {
  return steps == nullptr || Scalar(steps) == static_cast<double>(std::numeric_limits<int64_t>::max());
}

std::pair<const GraphValue*, int64_t> ScannedBy(const GraphNode& scan) {
  const GraphValue* const slices = scan.inputs.at(StatesOf(scan).size());
  AttrValue axes;
  const int64_t axis = scan.attributes->Get("scan_input_axes", &axes) && !axes.ints.empty() ? axes.ints[0] : 0;
  const int rank = slices->rank();
  const bool is_known = axis < rank && axis >= -rank;
  return {slices, is_known ? (*slices->shape())[static_cast<int>(axis < 0 ? axis + rank : axis)] : kUnknownExtent};
}

std::optional<SuppressionRule> RuleOf(const Nodes& nodes) {
  const Nodes inner = WithInner(nodes);
  std::set<Comparison> found;
  for (const GraphNode* const node : inner) {
    if (const auto comparison = ComparisonOf(*node)) found.insert(*comparison);
  }
  if (found.size() != 1) return std::nullopt;
  const Comparison& comparison = *found.begin();
  // Suppressing from a threshold on is suppressing above the next smaller number.
  const bool is_from = comparison.how == "Less" || comparison.how == "GreaterOrEqual";
  const auto number = static_cast<float>(comparison.number);
  return SuppressionRule{is_from ? static_cast<double>(std::nextafter(number, 0.0f)) : comparison.number,
                         std::any_of(inner.begin(), inner.end(), AddsRealOne),
                         comparison.how.starts_with("Less") && !comparison.is_protected};
}

// ---- In sessions ----------------------------------------------------------------------------------------------------

bool IsSuppressed(std::optional<DType> dtype) { return dtype == DType::kF32 || dtype == DType::kF16; }

float* FloatsOf(const AnyTensor& tensor, std::vector<float>* memory) {
  if (tensor.dtype == DType::kF32) return static_cast<float*>(tensor.data);
  memory->resize(static_cast<size_t>(tensor.shape.NumElements().value_or(0)));
  const auto* const from = static_cast<const Half*>(tensor.data);
  std::transform(from, from + memory->size(), memory->begin(), [](Half element) { return ToFloat(element); });
  return memory->data();
}

std::unique_ptr<Suppression> Suppression::Make(const PatternMatch& match, const GraphValue* boxes) {
  auto made = std::make_unique<Suppression>();
  if (!IsSuppressed(boxes->known.dtype)) return nullptr;
  made->suppress_ = NodeKernelOf(
      match,
      {{true, DType::kF32, Shape{kUnknownExtent, 4}, nullptr}, {true, DType::kF32, Shape{kUnknownExtent}, nullptr}},
      {{true, DType::kI64, Shape{kUnknownExtent}, nullptr}});
  made->offset_ = static_cast<float>(match.Parameter("offset"));
  made->removes_empty_ = match.Parameter("removes_empty") != 0;
  return made->suppress_ == nullptr ? nullptr : std::move(made);
}

Status Suppression::Run(const AnyTensor& boxes, float* scores, const std::vector<int64_t>& order,
                        const Context* context, std::vector<int64_t>* kept) const {
  const int64_t all = boxes.shape[0], columns = boxes.shape[1];
  const int64_t count = scores != nullptr ? all : std::ssize(order);
  std::vector<float> memory, corners(static_cast<size_t>(4 * count)), positions(static_cast<size_t>(count));
  const float* const data = FloatsOf(boxes, &memory);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = scores != nullptr ? i : order[static_cast<size_t>(i)];
    if (row < 0 || row >= all) return InvalidArgument("expected an index of a box in [0, ", all, "), got ", row);
    const float* const box = data + row * columns;
    float* const corner = corners.data() + 4 * i;
    for (int d = 0; d < 2; ++d) {
      corner[d] = box[d];
      // Reversed boxes overlap with nothing.
      corner[d + 2] = box[d + 2] < box[d] - offset_ ? box[d] - offset_ : box[d + 2];
    }
    positions[static_cast<size_t>(i)] = -static_cast<float>(i);
  }
  const AnyTensor tensors[] = {{corners.data(), DType::kF32, true, {count, 4}},
                               {scores != nullptr ? scores : positions.data(), DType::kF32, true, {count}}};
  kept->clear();
  if (count == 0) return Status::Ok();
  ScratchOutput result;
  POLYOP_RETURN_IF_ERROR(suppress_->Run(tensors, result, context));
  const auto* const indices = static_cast<const int64_t*>(result.data());
  bool has_empty = false;
  for (int64_t k = 0; k < result.shape()[0]; ++k) {
    const int64_t row = scores != nullptr ? indices[k] : order[static_cast<size_t>(indices[k])];
    const float* const box = data + row * columns;
    const bool is_empty = (box[2] - box[0] + offset_) * (box[3] - box[1] + offset_) == 0;
    if (!removes_empty_ || !is_empty || !has_empty) kept->push_back(indices[k]);
    has_empty = has_empty || is_empty;
  }
  return Status::Ok();
}

void DrawBoxes(std::mt19937& random, const AnyTensor& boxes, bool proper, bool crowded) {
  const int64_t count = boxes.shape[0], columns = boxes.shape[1];
  std::vector<double> drawn(static_cast<size_t>(count * columns));
  std::uniform_real_distribution<double> draw(0, 1);
  const double extent = crowded ? 4 : 4 * std::sqrt(static_cast<double>(count));
  for (int64_t i = 0; i < count; ++i) {
    double* const box = drawn.data() + i * columns;
    const bool is_odd = !proper && draw(random) < 0.1;
    for (int d = 0; d < 2; ++d) {
      const double begin = draw(random) * extent, factor = !is_odd ? 1 : draw(random) < 0.5 ? 0 : -1;
      box[d] = begin;
      box[d + 2] = begin + (2 + 18 * draw(random)) * factor;
    }
    for (int64_t c = 4; c < columns; ++c) box[c] = draw(random);
    if (draw(random) < 0.1 && i > 0) {
      std::copy_n(drawn.data() + static_cast<int64_t>(draw(random) * static_cast<double>(i)) * columns, columns, box);
    }
  }
  for (int64_t e = 0; e < count * columns; ++e) WriteElement(boxes.dtype, boxes.data, e, drawn[static_cast<size_t>(e)]);
}

}  // namespace polyop
