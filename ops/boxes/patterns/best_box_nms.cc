// SPDX-License-Identifier: Apache-2.0
// Greedy non-maximum suppression that repeatedly picks the best remaining box, in a Loop or a Scan:
//
//   while (left > min_score).any():   or a number of times, or both
//       i = left.argmax(); keep.append(i)
//       left = where((iou(boxes[i], boxes) > threshold) | (arange(n) == i), lowest, left)
//
// `left` contains scores, as here, or is a mask: i = where(left, scores, lowest).argmax(). The outputs are the indices
// and the scores of the kept boxes (as a list, per step, or written into a tensor), their number, and a mask.
//
// Boxes are as in greedy_nms.cc. An output of fixed length is padded with the loop's results when no box remains.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/elements.h"
#include "ops/boxes/patterns/suppression_loops.h"

namespace polyop {
namespace {

using Values = std::vector<const GraphValue*>;

constexpr int64_t kAll = -1;            // a number of steps, or a length: that of the boxes
constexpr int64_t kAsKept = -2;         // a length: that of the kept boxes
constexpr double kBelowScores = -1000;  // lower values mark removed boxes, not scores
constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum Kind { kIndices, kScores, kMask, kCount };

struct Loop {
  const GraphNode* node = nullptr;
  const GraphNode* pick = nullptr;  // finds the best remaining box
  LoopState left;                   // the scores or the mask of the remaining boxes
  const GraphValue* scores = nullptr;
  int64_t count = 0;  // of boxes
  double lowest = 0;  // the score of removed boxes
  bool ends = false;  // when no box remains
  int64_t steps = 0;  // the maximum number of steps, or kAll
};

// An output of the loop; if it has a length, it is filled up with `fill`.
struct Output {
  const GraphValue* value = nullptr;
  Kind kind = kIndices;
  int64_t length = kAsKept;
  double fill = 0;
};

// ---- The loop -------------------------------------------------------------------------------------------------------

// Returns the producer if it passes on scores: all of them, some, or the best.
const GraphNode* PassesScores(const GraphValue* value) {
  return Producer(
      value, {"Flatten", "Gather", "GatherND", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose",
              "Unsqueeze", "Cast", "GatherElements", "ReduceMax", "ScatterElements", "ScatterND", "TopK", "Where"});
}

const GraphNode* PassesScoresOrProduct(const GraphValue* value) {
  const GraphNode* const product = Producer(value, {"Mul"});
  return product != nullptr ? product : PassesScores(value);
}

// Returns the data inputs of a node, without indices and conditions.
Values DataOf(const GraphNode& node) {
  if (node.type == "Mul") return node.inputs;
  if (node.type == "Where") return {node.inputs.begin() + 1, node.inputs.end()};
  return {node.inputs.begin(), node.inputs.begin() + 1};
}

bool IsOf(const Graph& body, const GraphValue* value) {
  if (value->producer != nullptr) return value->producer->graph == &body;
  return std::find(body.inputs.begin(), body.inputs.end(), value) != body.inputs.end();
}

// Returns true if a value of the body depends on `source`.
bool Reads(const Graph& body, const GraphValue* value, const GraphValue* source) {
  Values open = {value};
  for (size_t i = 0; i < open.size(); ++i) {
    if (open[i] == source) return true;
    if (open[i]->producer == nullptr || open[i]->producer->graph != &body) continue;
    for (const GraphValue* const read : ReadBy(*open[i]->producer)) {
      if (std::find(open.begin(), open.end(), read) == open.end()) open.push_back(read);
    }
  }
  return false;
}

// Returns the mask without negations: the comparison of results decides which polarity is correct.
const GraphValue* MaskItself(const GraphValue* value) {
  value = NumberItself(value);
  while (const GraphNode* const node = Producer(value, {"Not"})) value = NumberItself(node->input(0));
  return value;
}

// Returns the index without the sums and choices by which exporters make negative indices positive.
const GraphValue* IndexItself(const GraphValue* value) {
  value = NumberItself(value);
  while (const GraphNode* const node = Producer(value, {"Concat", "Expand", "Where"})) {
    value = NumberItself(node->type == "Where" ? node->inputs.back() : node->input(0));
  }
  return value;
}

// Returns the only number that a step writes into the scores; 0 if it multiplies them by a mask. Nothing if there is no
// such number.
std::optional<double> Written(const GraphValue* after) {
  std::set<std::optional<double>> numbers;
  Values open = {after};
  for (size_t i = 0; i < open.size(); ++i) {
    const GraphNode* const node = PassesScoresOrProduct(open[i]);
    if (node == nullptr) continue;
    if (node->Is({"ScatterElements", "ScatterND"})) numbers.insert(FilledWith(node->input(2)));
    if (node->type == "Mul") numbers.insert(0.0);
    for (const GraphValue* const value : DataOf(*node)) {
      const auto number = node->type == "Where" ? FilledWith(value) : std::nullopt;
      if (number.has_value()) {
        numbers.insert(number);
      } else if (std::find(open.begin(), open.end(), value) == open.end()) {
        open.push_back(value);
      }
    }
  }
  return numbers.size() == 1 ? *numbers.begin() : std::nullopt;
}

// Returns the scores that the best one is picked from, and the value that removed boxes have.
std::optional<std::pair<const GraphValue*, double>> Ranked(const GraphNode& pick, const LoopState& left,
                                                           const Graph& body) {
  const GraphValue* const ranked = Trail(pick.input(0)).back();
  if (ranked == left.before) {
    const auto written = Written(left.after);
    return written.has_value() ? std::optional(std::pair(left.first, *written)) : std::nullopt;
  }
  const GraphNode* const chosen = Producer(ranked, {"Where"});
  if (chosen == nullptr || MaskItself(chosen->input(0)) != left.before) return std::nullopt;
  for (const size_t i : {1, 2}) {
    const auto lowest = FilledWith(chosen->input(3 - i));
    if (!lowest.has_value()) continue;
    const Values trail = Trail(chosen->input(i));
    const auto outer = std::find_if(trail.begin(), trail.end(), [&](auto* v) { return !IsOf(body, v); });
    return std::pair(outer != trail.end() ? *outer : trail[0], *lowest);
  }
  return std::nullopt;
}

// Returns the maximum number of steps, each of which removes a box; nothing if it is unknown.
std::optional<int64_t> StepsOf(const Graph& graph, const GraphNode& loop, int64_t count) {
  if (loop.type == "Scan") {
    const auto [slices, steps] = ScannedBy(loop);
    if (steps >= 0 && (graph.sizes_are_fixed || slices->is_constant)) return steps;
    return steps == count && count != kUnknownExtent ? std::optional(kAll) : std::nullopt;
  }
  std::set<int64_t> limits = ComparedLengths(loop);
  if (!IsUnlimited(loop.input(0)) && !IsLength(graph, loop.input(0), count)) {
    const auto number = Scalar(loop.input(0));
    if (!number.has_value()) return std::nullopt;
    limits.insert(static_cast<int64_t>(*number));
  }
  return limits.empty() ? kAll : *limits.begin();
}

std::optional<Loop> FindLoop(const Graph& graph, const GraphNode& loop) {
  const Graph& body = BodyOf(loop);
  for (const GraphNode& pick : body.nodes) {
    if (pick.type != "ArgMax" && (pick.type != "TopK" || Scalar(pick.input(1)) != 1)) continue;
    for (const LoopState& left : StatesOf(loop)) {
      const auto ranked = Ranked(pick, left, body);
      if (!ranked.has_value() || ranked->first->rank() != 1) continue;
      const int64_t count = (*ranked->first->shape())[0];
      if (count == 0 || count == 1) continue;
      const bool ends = loop.type == "Loop" && Reads(body, body.outputs[0], left.before);
      const auto steps = StepsOf(graph, loop, count);
      if (!steps.has_value()) return std::nullopt;
      return Loop{&loop, &pick, left, ranked->first, count, ranked->second, ends, *steps};
    }
  }
  return std::nullopt;
}

// Returns true if a step removes the picked box by its index, not because it overlaps with itself.
bool RemovesTheBest(const Loop& found) {
  const Graph& body = BodyOf(*found.node);
  const GraphValue* const picked = found.pick->outputs.back();
  return std::any_of(body.nodes.begin(), body.nodes.end(), [&](const GraphNode& node) {
    return node.Is({"Equal", "OneHot", "ScatterElements", "ScatterND"}) &&
           std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](auto* v) { return v != nullptr && IndexItself(v) == picked; }) &&
           Reads(body, found.left.after, node.outputs[0]);
  });
}

bool IsScore(const GraphValue* value, const Loop& found) {
  Values open = {value};
  for (size_t i = 0; i < open.size(); ++i) {
    if (open[i] == found.scores || (open[i] == found.left.before && found.left.first == found.scores)) return true;
    const GraphNode* const node = PassesScoresOrProduct(open[i]);
    if (node == nullptr || open[i] != node->outputs[0]) continue;
    for (const GraphValue* const data : DataOf(*node)) {
      if (std::find(open.begin(), open.end(), data) == open.end()) open.push_back(data);
    }
  }
  return false;
}

// The score that boxes must exceed. is_compared: the loop itself skips other boxes.
struct MinScore {
  double score = 0;
  bool is_compared = false;
};

// Returns the only number that scores are compared with, or else the number that the loop writes; nothing if it is
// unknown.
std::optional<MinScore> MinOf(const Loop& found, const std::vector<const GraphNode*>& nodes) {
  std::set<double> numbers;
  for (const GraphNode* const node : WithInner(nodes)) {
    if (Exchanged(node->type).empty()) continue;
    const size_t of_number = FilledWith(node->input(1)).has_value() ? 1 : 0;
    const auto number = FilledWith(node->input(of_number));
    const std::string_view how = of_number == 1 ? std::string_view(node->type) : Exchanged(node->type);
    if (!number.has_value() || !IsScore(node->input(1 - of_number), found)) continue;
    const bool is_enough = how == "GreaterOrEqual" || how == "Less";  // Less is the negated comparison
    const auto below = std::nextafter(static_cast<float>(*number), -std::numeric_limits<float>::infinity());
    numbers.insert(is_enough ? static_cast<double>(below) : *number);
  }
  if (numbers.size() > 1) return std::nullopt;
  return numbers.empty() ? MinScore{found.lowest, false} : MinScore{*numbers.begin(), true};
}

// Returns true if the number is below any score.
bool IsBelowAllScores(double lowest, const GraphValue* scores) {
  if (-kInfinity < lowest && lowest <= kBelowScores) return true;
  for (const GraphNode* node = PassesScores(scores); node != nullptr && node->type != "Where";
       node = PassesScores(scores)) {
    scores = node->input(0);
  }
  return -kInfinity < lowest && lowest <= 0 &&
         Producer(scores, {"Exp", "HardSigmoid", "Relu", "Sigmoid", "Softmax", "Softplus"}) != nullptr;
}

// ---- The outputs of the loop ----------------------------------------------------------------------------------------

// Returns which property of the best box a value is, and its value when no box remains.
std::optional<std::pair<Kind, double>> KindOf(const Loop& found, const GraphValue* value) {
  std::optional<double> fill;
  while (const GraphNode* const node = value->producer) {
    if (node == found.pick) {
      const bool is_index = value == node->outputs.back();
      return std::pair(is_index ? kIndices : kScores, fill.value_or(is_index ? 0 : found.lowest));
    }
    if (node->type == "Where" && FilledWith(node->input(1)).has_value() != FilledWith(node->input(2)).has_value()) {
      const size_t filled = FilledWith(node->input(1)).has_value() ? 1 : 2;
      fill = FilledWith(node->input(filled));
      value = node->input(3 - filled);
    } else if (node->Is({"Gather", "GatherElements", "GatherND", "ReduceMax"})) {
      return IsScore(value, found) ? std::optional(std::pair(kScores, fill.value_or(found.lowest))) : std::nullopt;
    } else if (NumberItself(value) != value) {
      value = NumberItself(value);
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

// Returns the length of a tensor with one element per step, or of `first`, which the loop starts with.
std::optional<int64_t> LengthOf(const Graph& graph, const Loop& found, const GraphValue* value,
                                const GraphValue* first = nullptr) {
  if (value->rank() < 1) return std::nullopt;
  const auto shape = value->shape()->span();
  if (std::any_of(shape.begin() + 1, shape.end(), [](int64_t extent) { return extent != 1; })) return std::nullopt;
  const GraphNode* const filled = Producer(first, {"ConstantOfShape", "Expand"});
  const GraphValue* const size = filled != nullptr ? filled->inputs.back() : first;
  if (shape[0] >= 0 && (graph.sizes_are_fixed || (size != nullptr && size->is_constant))) return shape[0];
  if (first != nullptr) {
    return shape[0] == found.count && found.count != kUnknownExtent ? std::optional(kAll) : std::nullopt;
  }
  return found.steps == kAll || found.steps == shape[0] ? std::optional(found.steps) : std::nullopt;
}

std::optional<Output> OfEachStep(const Graph& graph, const Loop& found, const GraphValue* inner,
                                 const GraphValue* outer) {
  const auto kind = KindOf(found, inner);
  if (!kind.has_value()) return std::nullopt;
  if (found.ends) return Output{outer, kind->first, kAsKept, 0};
  const auto length = LengthOf(graph, found, outer);
  return length.has_value() ? std::optional(Output{outer, kind->first, *length, kind->second}) : std::nullopt;
}

std::optional<Output> OfState(const Graph& graph, const Loop& found, const LoopState& state) {
  if (const GraphNode* const grown = Producer(state.after, {"SequenceInsert"})) {
    const auto& readers = state.last->readers;
    if (readers.size() != 1 || readers[0]->type != "ConcatFromSequence") return std::nullopt;
    return OfEachStep(graph, found, grown->input(1), readers[0]->outputs[0]);
  }
  const auto first = FilledWith(state.first);
  if (!first.has_value()) return std::nullopt;
  const auto added = Operands(Producer(NumberItself(state.after), {"Add"}));
  if (first == 0 && added.has_value() && added->second == 1) {
    return state.last->rank() == 0 ? std::optional(Output{state.last, kCount}) : std::nullopt;
  }
  const auto is_bool = [](const GraphValue* value) { return value->known.dtype == DType::kBool; };
  if (first == 0 && state.last->rank() == 1 && MayBeEqual((*state.last->shape())[0], found.count) &&
      (is_bool(state.first) || is_bool(state.before) || is_bool(state.last))) {
    return Output{state.last, kMask};
  }
  const GraphNode* const written = Producer(NumberItself(state.after), {"ScatterElements", "ScatterND", "Where"});
  if (written == nullptr) return std::nullopt;
  const bool is_chosen = written->type == "Where";
  if (NumberItself(written->input(is_chosen ? 2 : 0)) != state.before) return std::nullopt;
  const auto kind = KindOf(found, written->input(is_chosen ? 1 : 2));
  const auto length = LengthOf(graph, found, state.last, state.first);
  if (!kind.has_value() || !length.has_value()) return std::nullopt;
  return Output{state.last, kind->first, *length, found.ends ? *first : kind->second};
}

// Returns the outputs that other nodes read; empty if one is not recognized.
std::vector<Output> OutputsOf(const Graph& graph, const Loop& found) {
  std::vector<std::optional<Output>> outputs;
  for (const LoopState& state : StatesOf(*found.node)) {
    if (IsRead(state.last)) outputs.push_back(OfState(graph, found, state));
  }
  for (const auto& [inner, outer] : ResultsOfSteps(*found.node)) {
    if (IsRead(outer)) outputs.push_back(OfEachStep(graph, found, inner, outer));
  }
  std::vector<Output> recognized;
  for (const auto& output : outputs) {
    if (!output.has_value()) return {};
    recognized.push_back(*output);
  }
  return recognized;
}

// ---- The match ------------------------------------------------------------------------------------------------------

std::optional<PatternMatch> Match(const Graph& graph, const GraphNode& node) {
  const std::optional<Loop> found = FindLoop(graph, node);
  if (!found.has_value()) return std::nullopt;
  const GraphValue* const boxes = BoxesOf(node, found->count, found->scores);
  const std::vector<Output> outputs = OutputsOf(graph, *found);
  if (boxes == nullptr || outputs.empty()) return std::nullopt;
  PatternMatch match;
  match.inputs = {boxes, found->scores};
  match.shapes = {{SymbolOf(found->count), (*boxes->shape())[1]}, {SymbolOf(found->count)}};
  std::vector<int64_t> kinds, lengths;
  std::vector<double> fills;
  for (const Output& output : outputs) {
    match.outputs.push_back(output.value);
    kinds.push_back(output.kind);
    lengths.push_back(output.length);
    fills.push_back(output.fill);
  }
  const auto nodes = NodesBetween(match.inputs, match.outputs);
  if (!nodes.has_value()) return std::nullopt;
  const auto rule = RuleOf(*nodes);
  const auto min_score = MinOf(*found, *nodes);
  if (!rule.has_value() || !min_score.has_value()) {
    match.refused = rule.has_value() ? "its score threshold is not recognized" : kUnknownRule;
    return match;
  }
  rule->AddTo(&match);
  // The loop might never end if a score is as low as that of removed boxes, or if a box does not suppress itself.
  const bool stops = found->left.first == found->scores && min_score->is_compared && min_score->score >= found->lowest;
  const bool is_above = (found->ends && !stops) || IsBelowAllScores(found->lowest, found->scores);
  match.parameters.insert(match.parameters.end(),
                          {{"min_score", AttrValue::Float(min_score->score)},
                           {"lowest", AttrValue::Float(found->lowest)},
                           {"ends", AttrValue::Int(found->ends)},
                           {"is_above", AttrValue::Int(is_above)},
                           {"only_proper", AttrValue::Int(found->ends && !RemovesTheBest(*found))},
                           {"steps", AttrValue::Int(found->steps)},
                           {"kinds", AttrValue::Ints(kinds)},
                           {"lengths", AttrValue::Ints(lengths)},
                           {"fills", AttrValue::Floats(fills)}});
  match.work = static_cast<double>(found->count * (found->count - 1)) / 2;
  return match;
}

// ---- In sessions ----------------------------------------------------------------------------------------------------

const AttrValue& ParameterOf(const PatternMatch& match, std::string_view name) {
  return std::find_if(match.parameters.begin(), match.parameters.end(), [&](auto& p) { return p.first == name; })
      ->second;
}

class Kernel : public StandardKernel {
 public:
  Kernel(std::unique_ptr<Suppression> suppression, const PatternMatch& match)
      : suppression_(std::move(suppression)),
        min_score_(ParameterOf(match, "min_score").floats[0]),
        steps_(match.Parameter("steps")),
        kinds_(ParameterOf(match, "kinds").ints),
        lengths_(ParameterOf(match, "lengths").ints),
        fills_(ParameterOf(match, "fills").floats) {
    for (const GraphValue* const value : match.outputs) {
      types_.push_back(*value->known.dtype);
      ranks_.push_back(value->rank());
    }
  }

  Status Run(std::span<const AnyTensor> inputs, OutputSource& outputs, const Context* context) const override {
    const int64_t count = inputs[0].shape[0];
    std::vector<float> memory;
    float* const scores = FloatsOf(inputs[1], &memory);
    std::vector<int64_t> kept;
    POLYOP_RETURN_IF_ERROR(suppression_->Run(inputs[0], scores, {}, context, &kept));
    std::erase_if(kept, [&](int64_t i) { return !(scores[i] > min_score_); });
    if (steps_ != kAll && std::ssize(kept) > steps_) kept.resize(static_cast<size_t>(steps_));
    for (size_t o = 0; o < kinds_.size(); ++o) {
      int64_t length = lengths_[o] == kAsKept ? std::ssize(kept) : lengths_[o] == kAll ? count : lengths_[o];
      if (kinds_[o] == kMask) length = count;
      Shape shape;
      for (int d = 0; d < ranks_[o]; ++d) shape.push_back(d == 0 ? length : 1);
      void* data = nullptr;
      POLYOP_RETURN_IF_ERROR(outputs.Allocate(static_cast<int>(o), types_[o], shape, &data));
      if (kinds_[o] == kCount) WriteElement(types_[o], data, 0, static_cast<double>(kept.size()));
      if (kinds_[o] == kMask) {
        std::fill_n(static_cast<bool*>(data), count, false);
        for (const int64_t i : kept) static_cast<bool*>(data)[i] = true;
      }
      for (int64_t i = 0; kinds_[o] <= kScores && i < length; ++i) {
        double element = fills_[o];
        if (i < std::ssize(kept)) {
          const int64_t index = kept[static_cast<size_t>(i)];
          element = kinds_[o] == kIndices ? static_cast<double>(index) : static_cast<double>(scores[index]);
        }
        WriteElement(types_[o], data, i, element);
      }
    }
    return Status::Ok();
  }

 private:
  const std::unique_ptr<Suppression> suppression_;
  const double min_score_;
  const int64_t steps_;
  const std::vector<int64_t> kinds_, lengths_;
  const std::vector<double> fills_;
  std::vector<DType> types_;
  std::vector<int> ranks_;
};

std::unique_ptr<StandardKernel> MakeKernel(const PatternMatch& match) {
  const std::vector<int64_t>& kinds = ParameterOf(match, "kinds").ints;
  for (size_t o = 0; o < kinds.size(); ++o) {
    const auto dtype = match.outputs[o]->known.dtype;
    const bool fits = kinds[o] == kMask     ? dtype == DType::kBool
                      : kinds[o] == kScores ? dtype == match.inputs[1]->known.dtype
                                            : dtype == DType::kI64 || dtype == DType::kI32;
    if (!fits || match.outputs[o]->rank() < (kinds[o] == kCount ? 0 : 1)) return nullptr;
  }
  if (!IsSuppressed(match.inputs[1]->known.dtype)) return nullptr;
  auto suppression = Suppression::Make(match, match.inputs[0]);
  return suppression == nullptr ? nullptr : std::make_unique<Kernel>(std::move(suppression), match);
}

// With a fixed number of steps, some steps must find no box: few boxes, or many that overlap. Some scores are equal,
// some too low, and some minus infinity unless all must exceed that of removed boxes.
void Draw(const PatternMatch& match, std::mt19937& random, std::span<const AnyTensor> inputs) {
  const double lowest = ParameterOf(match, "lowest").floats[0], min_score = ParameterOf(match, "min_score").floats[0];
  const bool is_above = match.Parameter("is_above") != 0, ends = match.Parameter("ends") != 0;
  DrawBoxes(random, inputs[0], match.Parameter("only_proper") != 0, !ends && is_above);
  const int64_t count = inputs[1].shape[0], steps = match.Parameter("steps");
  std::vector<double> scores(static_cast<size_t>(count));
  std::uniform_real_distribution<double> draw(0, 1);
  const double begin = min_score > kBelowScores ? min_score : is_above && lowest > kBelowScores ? lowest : 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    scores[i] = begin + 1.5 * draw(random) - 0.5;
    if (is_above && !(scores[i] > lowest)) scores[i] = std::max(begin, lowest) + 0.01 + draw(random);
    if (!is_above && draw(random) < 0.05) scores[i] = -kInfinity;
    if (i > 0 && draw(random) < 0.1) scores[i] = scores[static_cast<size_t>(draw(random) * static_cast<double>(i))];
    if (!ends && !is_above &&
        draw(random) * static_cast<double>(count) > static_cast<double>(steps == kAll ? count : steps) / 2) {
      scores[i] -= 2;
    }
  }
  scores[0] = std::max(begin, is_above ? lowest : begin) + 1;  // a list of no box may be an error
  for (int64_t i = 0; i < count; ++i) {
    WriteElement(inputs[1].dtype, inputs[1].data, i, scores[static_cast<size_t>(i)]);
  }
}

POLYOP_PATTERN(best_box_nms, {"best box suppression", {"Loop", "Scan"}, Match, MakeKernel, 0, false, Draw});

}  // namespace
}  // namespace polyop
