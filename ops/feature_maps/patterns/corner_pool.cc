// SPDX-License-Identifier: Apache-2.0
// Corner pooling (Law and Deng, 2018): the running maximum of images along rows or columns, forward or backward, in the
// forms that exporters write:
//
//   row = x[0]; rows = [row]                             a loop, unrolled
//   for i in 1 …: row = maximum(row, x[i]); rows.append(row)
//   y = stack(rows)
//
//   for d in 1, 2, 4 …: y[d:] = maximum(y[d:], y[:-d])   doubled steps, as MMCV writes it without an operator
//   y = flip(cummax(flip(x)))                            MMCV's cummax, whose indices are unused
//
// Any of them may be flipped. A loop's minimum is the maximum of -x. polyop propagates NaN, which doubled steps may
// lose.
#include <algorithm>

#include "core/pattern.h"

namespace polyop {
namespace {

// `output` is the running maximum or minimum of `x` along the axis.
struct Running {
  const GraphValue* x = nullptr;
  const GraphValue* output = nullptr;
  int axis = 0;
  bool is_forward = true, is_minimum = false;
};

// Returns false unless the value is a tensor of images whose extents are known, up to the batch.
bool IsImages(const GraphValue* value) {
  return value != nullptr && value->rank() == 4 &&
         std::all_of(value->shape()->begin() + 1, value->shape()->end(), [](int64_t extent) { return extent >= 0; });
}

int AxisOf(int64_t axis) { return static_cast<int>(axis < 0 ? axis + 4 : axis); }

const GraphNode* OnlyReader(const GraphValue* value, std::initializer_list<std::string_view> types) {
  const bool only = value->readers.size() == 1 && !value->is_output;
  return only && value->readers[0]->Is(types) ? value->readers[0] : nullptr;
}

// ---- A loop, unrolled -----------------------------------------------------------------------------------------------

// Returns x if row = x[position] along the axis, else null.
const GraphValue* Taken(const GraphValue* row, int axis, int64_t position, int64_t extent) {
  const GraphNode* const node = Producer(row, {"Gather"});
  const std::optional<double> index = node != nullptr ? Scalar(node->input(1)) : std::nullopt;
  if (!index.has_value() || node->input(1)->rank() != 0 || AxisOf(node->Int("axis", 0)) != axis) return nullptr;
  return *index == static_cast<double>(position) ||
                 *index + static_cast<double>(extent) == static_cast<double>(position)
             ? node->input(0)
             : nullptr;
}

// Returns x if the rows are its running extremum from the first or the last position on, else null.
const GraphValue* SoFar(const std::vector<const GraphValue*>& rows, std::string_view type, int axis, bool is_forward) {
  const auto extent = static_cast<int64_t>(rows.size());
  const auto position = [&](int64_t i) { return is_forward ? i : extent - 1 - i; };
  const GraphValue* const x = Taken(rows[0], axis, position(0), extent);
  for (size_t i = 1; x != nullptr && i < rows.size(); ++i) {
    const GraphNode* const extremum = Producer(rows[i], {type});
    if (extremum == nullptr || extremum->inputs.size() != 2) return nullptr;
    const size_t before = extremum->inputs[0] == rows[i - 1] ? 0 : 1;
    if (extremum->inputs[before] != rows[i - 1]) return nullptr;
    if (Taken(extremum->inputs[1 - before], axis, position(static_cast<int64_t>(i)), extent) != x) return nullptr;
  }
  return x;
}

std::optional<Running> FindLoop(const GraphNode& stacked) {
  const GraphValue* const output = stacked.outputs[0];
  const int axis = AxisOf(stacked.Int("axis", 0));
  std::vector<const GraphValue*> rows;
  for (const GraphValue* const part : stacked.inputs) {
    const GraphNode* const node = Producer(part, {"Unsqueeze", "Reshape"});
    if (node == nullptr) return std::nullopt;
    rows.push_back(node->input(0));
  }
  if (!IsImages(output) || rows.size() < 2) return std::nullopt;
  for (const bool is_forward : {true, false}) {
    for (const std::string_view type : {"Max", "Min"}) {
      const GraphValue* const x = SoFar(rows, type, axis, is_forward);
      if (x != nullptr && SameShape(x, output)) return Running{x, output, axis, is_forward, type == "Min"};
    }
    std::reverse(rows.begin(), rows.end());
  }
  return std::nullopt;
}

// ---- Doubled steps --------------------------------------------------------------------------------------------------

// `output` is `before`, except for a part: the maximum of the elements and those at `distance`.
struct Step {
  const GraphValue *before = nullptr, *output = nullptr;
  int axis = 0;
  int64_t distance = 0;
  bool is_forward = true;  // the part is the last, else the first
};

// Returns the slices a and b of maximum(a, b) or where(a > b, a, b); nothing for others.
std::vector<const GraphNode*> LargerOf(const GraphValue* value) {
  const GraphNode* const node = Producer(value, {"Max", "Where"});
  if (node == nullptr) return {};
  std::vector<const GraphValue*> pair = node->inputs;
  if (node->type == "Where") {
    const GraphNode* const greater = Producer(pair[0], {"Greater", "GreaterOrEqual"});
    pair.erase(pair.begin());
    if (greater == nullptr || greater->inputs != pair) return {};
  }
  std::vector<const GraphNode*> slices;
  for (const GraphValue* const end : pair) slices.push_back(Producer(end, {"Slice"}));
  return slices.size() == 2 && slices[0] != nullptr && slices[1] != nullptr ? slices : std::vector<const GraphNode*>();
}

// Returns the node's output, or its transpose if that is the only reader: scatters work on leading dimensions.
const GraphValue* ResultOf(const GraphNode& node) {
  const GraphNode* const moved = node.type == "ScatterND" ? OnlyReader(node.outputs[0], {"Transpose"}) : nullptr;
  return moved != nullptr ? moved->outputs[0] : node.outputs[0];
}

// Recognizes a step. `node` joins the part and the rest, or scatters the part into the previous value.
std::optional<Step> StepOf(const GraphNode& node) {
  if (!node.Is({"Concat", "ScatterND"})) return std::nullopt;
  const GraphValue* const output = ResultOf(node);
  std::vector<const GraphValue*> parts = node.inputs;
  if (node.type == "ScatterND") parts = {Trail(node.input(2)).back()};
  std::vector<size_t> larger;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!LargerOf(parts[i]).empty()) larger.push_back(i);
  }
  if (!IsImages(output) || larger.size() != 1 || parts.size() > 2) return std::nullopt;
  const std::vector<const GraphNode*> slices = LargerOf(parts[larger[0]]);
  const GraphValue *const before = slices[0]->input(0), *const part = slices[0]->outputs[0];
  if (slices[1]->input(0) != before || !SameShape(before, output) || !IsImages(part)) return std::nullopt;
  std::vector<int> shorter;
  for (int d = 0; d < 4; ++d) {
    if ((*part->shape())[d] != (*output->shape())[d]) shorter.push_back(d);
  }
  if (shorter.size() != 1) return std::nullopt;
  Step step{before, output, shorter[0], (*output->shape())[shorter[0]] - (*part->shape())[shorter[0]], larger[0] == 1};
  if (node.type == "ScatterND") {
    const auto index = Numbers(node.input(1));
    if (!index.has_value() || index->empty()) return std::nullopt;
    step.is_forward = (*index)[0] != 0;
  }
  return step;
}

std::optional<Step> StepTo(const GraphValue* value) {
  const GraphNode* node = value->producer;
  if (node != nullptr && node->type == "Transpose") node = Producer(node->input(0), {"ScatterND"});
  const std::optional<Step> step = node != nullptr ? StepOf(*node) : std::nullopt;
  return step.has_value() && step->output == value ? step : std::nullopt;
}

// Returns true if another step begins at `from`, from which the value is computed in a few nodes.
bool IsContinued(const GraphValue* value, const GraphValue* from, int nodes = 4) {
  return nodes > 0 && std::any_of(value->readers.begin(), value->readers.end(), [&](const GraphNode* reader) {
           const std::optional<Step> step = StepOf(*reader);
           return (step.has_value() && step->before == from) || (reader->Is({"Slice", "Max", "Where", "Transpose"}) &&
                                                                 IsContinued(reader->outputs[0], from, nodes - 1));
         });
}

// Recognizes consecutive steps of 1, 2, 4, … that cover the whole dimension.
std::optional<Running> FindDoubled(const GraphNode& node) {
  const std::optional<Step> last = StepOf(node);
  if (!last.has_value() || IsContinued(last->output, last->output)) return std::nullopt;
  std::vector<Step> chain = {*last};
  while (const std::optional<Step> step = StepTo(chain.back().before)) chain.push_back(*step);
  std::reverse(chain.begin(), chain.end());
  for (size_t i = 0; i < chain.size(); ++i) {
    const bool is_next =
        chain[i].axis == last->axis && chain[i].is_forward == last->is_forward && chain[i].distance == int64_t{1} << i;
    if (!is_next) return std::nullopt;
  }
  if (2 * last->distance < (*last->output->shape())[last->axis]) return std::nullopt;
  return Running{chain[0].before, last->output, last->axis, last->is_forward, false};
}

// ---- MMCV's operator, and flips -------------------------------------------------------------------------------------

std::optional<Running> FindCummax(const GraphNode& node) {
  if (!IsImages(node.input(0)) || std::any_of(node.outputs.begin() + 1, node.outputs.end(), IsRead))
    return std::nullopt;
  return Running{node.input(0), node.outputs[0], AxisOf(node.Int("dim", 0)), true, false};
}

bool Flips(const GraphNode* node, int axis) {
  if (node == nullptr || node->type != "Slice" || !SameShape(node->input(0), node->outputs[0])) return false;
  const std::optional<double> start = Scalar(node->input(1)), axes = Scalar(node->input(3)),
                              by = Scalar(node->input(4));
  if (!start.has_value() || !axes.has_value() || by != -1 || AxisOf(static_cast<int64_t>(*axes)) != axis) return false;
  return *start == -1 || *start == static_cast<double>((*node->outputs[0]->shape())[axis] - 1);
}

// Removes flips of both ends.
Running WithoutFlips(const Running& found) {
  const GraphNode *const before = found.x->producer, *const after = OnlyReader(found.output, {"Slice"});
  if (!Flips(before, found.axis) || !Flips(after, found.axis)) return found;
  return {before->input(0), after->outputs[0], found.axis, !found.is_forward, found.is_minimum};
}

// ---- The match ------------------------------------------------------------------------------------------------------

std::optional<PatternMatch> Match(const Graph&, const GraphNode& end) {
  std::optional<Running> found;
  if (end.type == "mmcv::cummax") {
    found = FindCummax(end);
  } else {
    found = FindDoubled(end);
    if (!found.has_value() && end.type == "Concat") found = FindLoop(end);
  }
  if (!found.has_value() || found->axis < 2) return std::nullopt;
  const Running running = WithoutFlips(*found);
  PatternMatch match;
  match.inputs = {running.x};
  match.outputs = {running.output};
  match.node = "mmcv::MMCVCornerPool";  // its modes are top, bottom, left and right
  match.attributes = {{"mode", AttrValue::Int((running.axis == 2 ? 0 : 2) + (running.is_forward ? 1 : 0))}};
  match.parameters = {{"is_minimum", AttrValue::Int(running.is_minimum)}};
  match.is_exact = end.type == "mmcv::cummax";
  match.work = running.output->known.TypicalElements();
  return match;
}

// -maximum(-x).
class Minimum : public StandardKernel {
 public:
  explicit Minimum(std::unique_ptr<StandardKernel> maximum) : maximum_(std::move(maximum)) {}

  Status Run(std::span<const AnyTensor> inputs, OutputSource& outputs, const Context* context) const override {
    ScratchOutput negative;
    AnyTensor x = inputs[0];
    POLYOP_RETURN_IF_ERROR(negative.Allocate(0, x.dtype, x.shape, &x.data));
    Negate(inputs[0], static_cast<std::byte*>(x.data));
    struct Remembered : OutputSource {
      OutputSource& to;
      AnyTensor tensor;
      explicit Remembered(OutputSource& source) : to(source) {}
      bool Requested(int index) override { return to.Requested(index); }
      Status Allocate(int index, DType dtype, const Shape& shape, void** data) override {
        POLYOP_RETURN_IF_ERROR(to.Allocate(index, dtype, shape, data));
        tensor = {*data, dtype, true, shape};
        return Status::Ok();
      }
    } result(outputs);
    POLYOP_RETURN_IF_ERROR(maximum_->Run({&x, 1}, result, context));
    Negate(result.tensor, static_cast<std::byte*>(result.tensor.data));
    return Status::Ok();
  }

 private:
  // Inverts the signs of real numbers.
  static void Negate(const AnyTensor& from, std::byte* to) {
    const auto size = static_cast<int64_t>(SizeOf(from.dtype));
    const int64_t bytes = from.shape.NumElements().value_or(0) * size;
    const auto* const data = static_cast<const std::byte*>(from.data);
    for (int64_t i = 0; i < bytes; ++i) to[i] = i % size == size - 1 ? data[i] ^ std::byte{0x80} : data[i];
  }

  const std::unique_ptr<StandardKernel> maximum_;
};

std::unique_ptr<StandardKernel> MakeKernel(const PatternMatch& match) {
  std::unique_ptr<StandardKernel> pool = NodeKernelOf(match);
  if (pool == nullptr || match.Parameter("is_minimum") == 0) return pool;
  return std::make_unique<Minimum>(std::move(pool));
}

POLYOP_PATTERN(corner_pool, {"corner pooling", {"Concat", "ScatterND", "mmcv::cummax"}, Match, MakeKernel, 0});

}  // namespace
}  // namespace polyop
