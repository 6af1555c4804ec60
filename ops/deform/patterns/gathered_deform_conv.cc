// SPDX-License-Identifier: Apache-2.0
// Deformable convolution as deform_conv2d_onnx_exporter writes torchvision's operator, in BiRefNet among others:
//
//   p = positions of the filter's points + offset
//   samples = sum over the four corners of p: weight of the corner * GatherND or GatherElements(Pad(image), corner)
//   output = Conv(samples * mask, one patch of the filter's extents for each element), strides as large as the filter
//
// The positions are a constant [1, 1, K, 2, OH, OW], from which strides, dilations and padding are read. The image is
// padded by at least a pixel of zeros, to which corners outside are clamped.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "core/elements.h"
#include "core/pattern.h"

namespace polyop {
namespace {

constexpr size_t kMaxNodes = 40;  // between a weight and the Floor that it is computed from

struct Sampling {
  const GraphNode* pad = nullptr;      // of the image
  const GraphValue* base = nullptr;    // the positions
  const GraphValue* shifts = nullptr;  // the offset, reshaped
  const GraphValue* mask = nullptr;
};

// How the filter moves: (y, x). pads: above, left, below, right.
struct Filter {
  std::vector<int64_t> strides, dilations, pads = {0, 0, 0, 0};
};

// ---- The nodes ------------------------------------------------------------------------------------------------------

// Adds the products of a sum.
void AddTerms(const GraphValue* value, std::vector<const GraphNode*>* terms) {
  const GraphNode* const sum = Producer(value, {"Sum", "Add"});
  if (sum == nullptr) return;
  for (const GraphValue* const operand : sum->inputs) {
    const GraphNode* const product = Producer(operand, {"Mul"});
    product != nullptr ? terms->push_back(product) : AddTerms(operand, terms);
  }
}

std::vector<const GraphNode*> TermsOf(const GraphValue* samples) {
  std::vector<const GraphNode*> terms;
  AddTerms(Trail(samples).back(), &terms);
  return terms;
}

// Returns the Pad of the image that these samples were gathered from.
const GraphNode* PadOf(const GraphValue* samples) {
  const GraphValue* const end = Trail(samples).back();  // passes through GatherND
  const GraphNode* const gather = Producer(end, {"GatherElements"});
  return Producer(gather != nullptr ? Trail(gather->input(0)).back() : end, {"Pad"});
}

// Returns the nearest Floor that the values are computed from, but not through what is gathered.
const GraphNode* FloorOf(const std::vector<const GraphValue*>& values) {
  std::vector<const GraphValue*> open;
  const auto add = [&](const std::vector<const GraphValue*>& more) {
    std::copy_if(more.begin(), more.end(), std::back_inserter(open), [](auto* v) { return v != nullptr; });
  };
  add(values);
  std::erase_if(open, [](const GraphValue* value) { return PadOf(value) != nullptr; });
  for (size_t i = 0; i < open.size() && i < kMaxNodes; ++i) {
    const GraphNode* const node = open[i]->producer;
    if (node == nullptr) continue;
    if (node->type == "Floor") return node;
    add(std::vector(node->inputs));
  }
  return nullptr;
}

std::optional<Sampling> SamplingOf(const GraphValue* patches) {
  if (patches == nullptr) return std::nullopt;
  Sampling found;
  std::vector<const GraphNode*> terms = TermsOf(patches);
  const GraphNode* const product = Producer(Trail(patches).back(), {"Mul"});
  for (size_t i = 0; terms.empty() && product != nullptr && i < 2; ++i) {
    terms = TermsOf(product->inputs[i]);
    found.mask = product->inputs[1 - i];
  }
  if (terms.size() != 4) return std::nullopt;
  std::set<const GraphNode*> pads, floors;
  for (const GraphNode* const term : terms) {
    for (const GraphValue* const value : term->inputs) pads.insert(PadOf(value));
    floors.insert(FloorOf(term->inputs));
  }
  pads.erase(nullptr);
  floors.erase(nullptr);
  if (pads.size() != 1 || floors.size() != 1) return std::nullopt;
  found.pad = *pads.begin();
  const GraphNode* const added = Producer((*floors.begin())->input(0), {"Add"});
  for (size_t i = 0; added != nullptr && i < 2; ++i) {
    found.base = added->inputs[i];
    found.shifts = added->inputs[1 - i];
    if (found.base != nullptr && found.base->is_constant && found.base->rank() == 6 && found.shifts != nullptr) {
      return found;
    }
  }
  return std::nullopt;
}

// ---- The match ------------------------------------------------------------------------------------------------------

// Returns how the filter moves, if the positions [1, 1, K, 2, OH, OW] are those of a filter.
std::optional<Filter> FilterOf(const GraphValue* base, std::span<const int64_t> kernel, const GraphValue* padding,
                               std::span<const int64_t> extents) {
  const auto positions = Numbers(base), pads = Numbers(padding);
  if (!positions.has_value() || !pads.has_value() || pads->size() != 8) return std::nullopt;
  for (const size_t d : {0, 1, 4, 5}) {
    if ((*pads)[d] != 0) return std::nullopt;
  }
  const Shape& shape = *base->shape();
  const std::array<int64_t, 2> out = {shape[4], shape[5]};
  // The position along an axis of point (a, b) of the filter for the result (i, j).
  const auto at = [&](int64_t a, int64_t b, size_t axis, int64_t i, int64_t j) {
    const int64_t point = a * kernel[1] + b;
    return (*positions)[static_cast<size_t>(((point * 2 + static_cast<int64_t>(axis)) * out[0] + i) * out[1] + j)];
  };
  Filter moves;
  for (const size_t axis : {0, 1}) {
    const double first = at(0, 0, axis, 0, 0);
    const double before = (*pads)[2 + axis] - first, after = (*pads)[6 + axis] - first;
    const int64_t down = axis == 0, right = axis == 1;
    // One position allows any stride: the largest gives one.
    const double stride =
        out[axis] > 1 ? at(0, 0, axis, down, right) - first : static_cast<double>(extents[axis]) + before + after;
    const double dilation = kernel[axis] > 1 ? at(down, right, axis, 0, 0) - first : 1;
    if (std::min({before, after, (*pads)[2 + axis] - 1, (*pads)[6 + axis] - 1}) < 0) return std::nullopt;
    if (std::min(stride, dilation) < 1) return std::nullopt;
    for (const double number : {before, after, stride, dilation}) {
      if (number != std::floor(number)) return std::nullopt;
    }
    for (int64_t a = 0; a < kernel[0]; ++a) {
      for (int64_t b = 0; b < kernel[1]; ++b) {
        for (int64_t i = 0; i < out[0]; ++i) {
          for (int64_t j = 0; j < out[1]; ++j) {
            const auto point = static_cast<double>(axis == 0 ? a : b), result = static_cast<double>(axis == 0 ? i : j);
            if (at(a, b, axis, i, j) != first + point * dilation + result * stride) return std::nullopt;
          }
        }
      }
    }
    moves.strides.push_back(static_cast<int64_t>(stride));
    moves.dilations.push_back(static_cast<int64_t>(dilation));
    moves.pads[axis] = static_cast<int64_t>(before);
    moves.pads[2 + axis] = static_cast<int64_t>(after);
  }
  return moves;
}

// Returns the first tensor of this shape that the value was moved from; null if there is none. 0 fits any extent.
const GraphValue* First(const GraphValue* value, const Shape& shape) {
  std::vector<const GraphValue*> trail = Trail(value);
  std::reverse(trail.begin(), trail.end());
  for (const GraphValue* const moved : trail) {
    if (moved->rank() != shape.rank()) continue;
    const Shape& own = *moved->shape();
    if (std::equal(own.begin(), own.end(), shape.begin(), [](int64_t n, int64_t s) { return s == 0 || n == s; })) {
      return moved;
    }
  }
  return nullptr;
}

std::optional<PatternMatch> Match(const Graph&, const GraphNode& conv) {
  const std::optional<Sampling> found = SamplingOf(conv.input(0));
  if (!found.has_value()) return std::nullopt;
  PatternMatch match;
  match.outputs = {conv.outputs[0]};
  const auto refused = [&](auto... why) {
    match.refused = Concat(why...);
    return match;
  };
  const GraphValue *const image = found->pad->input(0), *const filters = conv.input(1), *const result = conv.outputs[0];
  if (image->rank() != 4 || filters->rank() != 4 || result->rank() != 4) {
    return refused("expected known shapes of the image and the filter");
  }
  const auto kernel = filters->shape()->span().subspan(2), out = result->shape()->span().subspan(2);
  const int64_t points = kernel[0] * kernel[1], batch = (*image->shape())[0];
  if (!(*found->base->shape() == Shape{1, 1, points, 2, out[0], out[1]})) {
    return refused("expected positions [1, 1, ", points, ", 2, ", out[0], ", ", out[1], "], got ",
                   ToString(*found->base->shape()));
  }
  const auto moves = FilterOf(found->base, kernel, found->pad->input(1), image->shape()->span().subspan(2));
  if (!moves.has_value()) {
    return refused("expected the positions of a filter with strides, dilations and a padded image");
  }
  const GraphValue* const offset = First(found->shifts, {batch, 0, out[0], out[1]});
  const int64_t channels = offset != nullptr ? (*offset->shape())[1] : 0;
  if (channels <= 0 || channels % (2 * points) != 0) {
    return refused("expected offsets [", batch, ", G * ", 2 * points, ", ", out[0], ", ", out[1], "]");
  }
  const GraphValue* mask = nullptr;
  if (found->mask != nullptr) mask = First(found->mask, {batch, channels / 2, out[0], out[1]});
  if (found->mask != nullptr && mask == nullptr) {
    return refused("expected a mask [", batch, ", ", channels / 2, ", ", out[0], ", ", out[1], "]");
  }
  std::vector<int64_t> roles;  // the index among the inputs of each input of the node; -1 if it is omitted
  for (const GraphValue* const value : {image, filters, offset, conv.input(2), mask}) {
    const auto known = std::find(match.inputs.begin(), match.inputs.end(), value);
    roles.push_back(value == nullptr ? -1 : known - match.inputs.begin());
    if (value == nullptr || known != match.inputs.end()) continue;
    match.inputs.push_back(value);
    match.ranges.emplace_back(value == offset ? std::pair(-3.0, 3.0) : std::pair(-2.0, 2.0));
  }
  while (roles.back() < 0) roles.pop_back();
  match.node = "polyop::DeformConv";
  match.attributes = {{"kernel_shape", AttrValue::Ints({kernel.begin(), kernel.end()})},
                      {"strides", AttrValue::Ints(moves->strides)},
                      {"dilations", AttrValue::Ints(moves->dilations)},
                      {"pads", AttrValue::Ints(moves->pads)},
                      {"group", AttrValue::Int(conv.Int("group", 1))},
                      {"offset_group", AttrValue::Int(channels / (2 * points))}};
  match.parameters = {{"roles", AttrValue::Ints(roles)}, {"offset", AttrValue::Int(roles[2])}};
  return match;
}

// ---- In sessions ----------------------------------------------------------------------------------------------------

class Convolution : public StandardKernel {
 public:
  Convolution(std::unique_ptr<StandardKernel> convolution, std::vector<int64_t> roles)
      : convolution_(std::move(convolution)), roles_(std::move(roles)) {}

  Status Run(std::span<const AnyTensor> inputs, OutputSource& outputs, const Context* context) const override {
    std::vector<AnyTensor> tensors(roles_.size());
    for (size_t i = 0; i < roles_.size(); ++i) {
      if (roles_[i] >= 0) tensors[i] = inputs[static_cast<size_t>(roles_[i])];
    }
    return convolution_->Run(tensors, outputs, context);
  }

 private:
  const std::unique_ptr<StandardKernel> convolution_;
  const std::vector<int64_t> roles_;
};

std::unique_ptr<StandardKernel> MakeKernel(const PatternMatch& match) {
  const std::vector<int64_t>& roles = match.parameters[0].second.ints;
  std::vector<KnownTensor> inputs;
  for (const int64_t role : roles) {
    inputs.push_back(role < 0 ? KnownTensor() : match.inputs[static_cast<size_t>(role)]->known);
  }
  auto convolution = NodeKernelOf(match, inputs);
  return convolution == nullptr ? nullptr : std::make_unique<Convolution>(std::move(convolution), roles);
}

POLYOP_PATTERN(gathered_deform_conv, {"deformable convolution", {"Conv"}, Match, MakeKernel, 0});

}  // namespace
}  // namespace polyop
