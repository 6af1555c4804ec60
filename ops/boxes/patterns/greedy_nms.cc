// SPDX-License-Identifier: Apache-2.0
// Greedy non-maximum suppression in a loop over the sorted boxes, as exporters write torch code without an operator.
//
// Either with a list of candidate indices that shrinks with every kept box:
//
//   while order.numel() > 0:                  order: by descending score; or ascending, and taken from the end
//       i = order[0]; keep.append(i); rest = order[1:]
//       order = rest[iou(boxes[i], boxes[rest]) <= threshold]
//   keep = stack(keep)
//
// or with a mask of sorted boxes, in a Loop or a Scan, with a matrix of all pairs or row by row:
//
//   for i in range(n):
//       keep = keep & ~(keep[i] & (iou[i] > threshold) & (arange(n) > i))      or the suppressed boxes, by `|`
//
// Boxes are (x1, y1, x2, y2), optionally followed by more columns, and may include the last pixel (x2 - x1 + 1). The
// loop must depend on nothing but the boxes and their order.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/elements.h"
#include "ops/boxes/patterns/suppression_loops.h"

namespace polyop {
namespace {

// A recognized loop. output: the kept indices in order; without `order` a mask of the sorted boxes.
struct Found {
  const GraphNode* loop = nullptr;
  const GraphValue* output = nullptr;
  int64_t count = 0;  // of boxes
  const GraphValue* order = nullptr;
  bool is_rising = false;             // the order is ascending
  const GraphValue* among = nullptr;  // a mask of the candidates, if not all boxes are
  bool marks_removed = false;         // the mask contains the suppressed boxes
};

// ---- The loops ------------------------------------------------------------------------------------------------------

// Returns true if the loop runs until no candidate remains: a limit has no effect if fewer boxes are kept.
bool EndsWithTheBoxes(const Graph& graph, const GraphNode& loop, int64_t count) {
  if (loop.type == "Scan") return MayBeEqual(ScannedBy(loop).second, count);
  if (!IsUnlimited(loop.input(0)) && !IsLength(graph, loop.input(0), count)) return false;
  std::set<int64_t> lengths = ComparedLengths(loop);
  if (graph.sizes_are_fixed) lengths.erase(count);
  return lengths.empty();
}

// Returns true if the number of steps is the number of boxes, for any number of boxes.
bool TakesAll(const Graph& graph, const GraphNode& loop, int64_t count) {
  return loop.type == "Scan" ? !ScannedBy(loop).first->is_constant : IsLength(graph, loop.input(0), count);
}

// Recognizes a loop with a list. joined: the node that concatenates the kept indices.
std::optional<Found> Listed(const Graph& graph, const GraphNode& joined) {
  const GraphNode* const loop = Producer(joined.input(0), {"Loop"});
  if (loop == nullptr) return std::nullopt;
  const std::vector<LoopState> states = StatesOf(*loop);
  const auto keep = std::find_if(states.begin(), states.end(), [&](auto& s) { return s.last == joined.input(0); });
  if (keep == states.end() || Producer(keep->first, {"SequenceEmpty"}) == nullptr) return std::nullopt;
  const GraphNode* const grown = Producer(keep->after, {"SequenceInsert"});
  if (grown == nullptr || grown->input(0) != keep->before) return std::nullopt;
  const GraphNode* const taken = Producer(NumberItself(grown->input(1)), {"Gather"});
  const auto position = taken != nullptr ? Scalar(taken->input(1)) : std::nullopt;
  if (position != 0 && position != -1) return std::nullopt;
  const auto order = std::find_if(states.begin(), states.end(), [&](auto& s) { return s.before == taken->input(0); });
  if (order == states.end() || order->first->rank() != 1 || joined.outputs[0]->rank() > 1) return std::nullopt;
  const int64_t count = (*order->first->shape())[0];
  if (count == 0 || !EndsWithTheBoxes(graph, *loop, count)) return std::nullopt;
  return Found{loop, joined.outputs[0], count, order->first, position == -1, nullptr, false};
}

std::optional<Found> Masked(const Graph& graph, const GraphNode& loop) {
  std::vector<const GraphValue*> read = loop.outputs;
  std::erase_if(read, [](const GraphValue* value) { return !IsRead(value); });
  if (read.size() != 1) return std::nullopt;
  const auto results = ResultsOfSteps(loop);
  // Then the step tests whether its box is kept.
  const bool is_of_steps = std::any_of(results.begin(), results.end(), [&](auto& r) { return r.second == read[0]; });
  for (const LoopState& state : StatesOf(loop)) {
    if (state.first->rank() != 1 || (!is_of_steps && read[0] != state.last)) continue;
    const Shape& known = *(read[0]->shape() != nullptr ? read[0] : state.first)->shape();
    int64_t count = known.rank() == 1 ? known[0] : 0;
    // Unless the steps are as many as the boxes, the results differ.
    if (count == kUnknownExtent && loop.input(0) != nullptr && loop.input(0)->integers.has_value()) {
      count = loop.input(0)->integers->at(0);
    }
    if (count == 0 || count == 1 || !MayBeEqual((*state.first->shape())[0], count)) continue;
    if (!EndsWithTheBoxes(graph, loop, count)) continue;
    if (!graph.sizes_are_fixed && !TakesAll(graph, loop, count)) continue;
    const auto is_bool = [](const GraphValue* value) { return value != nullptr && value->known.dtype == DType::kBool; };
    if (const auto number = FilledWith(state.first)) {
      return Found{&loop, read[0], count, nullptr, false, nullptr, *number == 0 && !is_of_steps};
    }
    if (Producer(state.after, {"And"}) != nullptr &&
        (is_bool(state.first) || is_bool(state.before) || is_bool(state.last))) {
      return Found{&loop, read[0], count, nullptr, false, state.first, false};
    }
  }
  return std::nullopt;
}

std::optional<PatternMatch> Match(const Graph& graph, const GraphNode& node) {
  const std::optional<Found> found = node.type == "ConcatFromSequence" ? Listed(graph, node) : Masked(graph, node);
  if (!found.has_value()) return std::nullopt;
  const GraphValue* const more = found->order != nullptr ? found->order : found->among;
  const GraphValue* const boxes = BoxesOf(*found->loop, found->count, more);
  if (boxes == nullptr) return std::nullopt;
  PatternMatch match;
  match.at = found->loop;
  match.inputs = {boxes};
  match.shapes = {{SymbolOf(found->count), (*boxes->shape())[1]}};
  if (more != nullptr) match.inputs.push_back(more), match.shapes.push_back({SymbolOf(found->count)});
  match.outputs = {found->output};
  const auto nodes = NodesBetween(match.inputs, match.outputs);
  if (!nodes.has_value()) return std::nullopt;
  const auto rule = RuleOf(*nodes);
  if (!rule.has_value()) return match.refused = kUnknownRule, match;
  rule->AddTo(&match);
  match.parameters.emplace_back("is_ordered", AttrValue::Int(found->order != nullptr));
  match.parameters.emplace_back("is_rising", AttrValue::Int(found->is_rising));
  match.parameters.emplace_back("marks_removed", AttrValue::Int(found->marks_removed));
  match.work = static_cast<double>(found->count * (found->count - 1)) / 2;
  return match;
}

// ---- In sessions ----------------------------------------------------------------------------------------------------

class Kernel : public StandardKernel {
 public:
  Kernel(std::unique_ptr<Suppression> suppression, const PatternMatch& match)
      : suppression_(std::move(suppression)),
        is_ordered_(match.Parameter("is_ordered") != 0),
        is_rising_(match.Parameter("is_rising") != 0),
        marks_removed_(match.Parameter("marks_removed") != 0) {}

  Status Run(std::span<const AnyTensor> inputs, OutputSource& outputs, const Context* context) const override {
    const int64_t count = inputs[0].shape[0];
    std::vector<int64_t> order, kept;
    if (is_ordered_) {
      const auto* const given = static_cast<const int64_t*>(inputs[1].data);
      order.assign(given, given + inputs[1].shape[0]);
      if (is_rising_) std::reverse(order.begin(), order.end());
    } else {
      for (int64_t i = 0; i < count; ++i) {
        if (inputs.size() == 1 || ReadElement(DType::kBool, inputs[1].data, i) != 0) order.push_back(i);
      }
    }
    POLYOP_RETURN_IF_ERROR(suppression_->Run(inputs[0], nullptr, order, context, &kept));
    for (int64_t& i : kept) i = order[static_cast<size_t>(i)];
    void* data = nullptr;
    if (is_ordered_) {
      POLYOP_RETURN_IF_ERROR(outputs.Allocate(0, DType::kI64, {std::ssize(kept)}, &data));
      std::copy(kept.begin(), kept.end(), static_cast<int64_t*>(data));
      return Status::Ok();
    }
    POLYOP_RETURN_IF_ERROR(outputs.Allocate(0, DType::kBool, {count}, &data));
    auto* const mask = static_cast<bool*>(data);
    std::fill_n(mask, count, marks_removed_);
    for (const int64_t i : kept) mask[i] = !marks_removed_;
    return Status::Ok();
  }

 private:
  const std::unique_ptr<Suppression> suppression_;
  const bool is_ordered_, is_rising_, marks_removed_;
};

std::unique_ptr<StandardKernel> MakeKernel(const PatternMatch& match) {
  const bool is_ordered = match.Parameter("is_ordered") != 0;
  const auto expected = is_ordered ? DType::kI64 : DType::kBool;
  if (match.outputs[0]->known.dtype != expected) return nullptr;
  if (match.inputs.size() > 1 && match.inputs[1]->known.dtype != expected) return nullptr;
  auto suppression = Suppression::Make(match, match.inputs[0]);
  return suppression == nullptr ? nullptr : std::make_unique<Kernel>(std::move(suppression), match);
}

void Draw(const PatternMatch& match, std::mt19937& random, std::span<const AnyTensor> inputs) {
  DrawBoxes(random, inputs[0]);
  if (inputs.size() == 1) return;
  const int64_t count = inputs[1].shape[0];
  if (match.Parameter("is_ordered") != 0) {
    auto* const order = static_cast<int64_t*>(inputs[1].data);
    std::iota(order, order + count, 0);
    std::shuffle(order, order + count, random);
  } else {
    for (int64_t i = 0; i < count; ++i) WriteElement(DType::kBool, inputs[1].data, i, random() % 10 < 7);
  }
}

POLYOP_PATTERN(greedy_nms,
               {"greedy suppression", {"ConcatFromSequence", "Loop", "Scan"}, Match, MakeKernel, 0, false, Draw});

}  // namespace
}  // namespace polyop
