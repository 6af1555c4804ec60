// SPDX-License-Identifier: Apache-2.0
// Masks that are pasted into images one by one, as in the Loop of torchvision's Mask R-CNN:
//
//   for mask, (x1, y1, x2, y2) in zip(masks, boxes):
//       image = zeros(H, W)
//       image[y1 : y2 + 1, x1 : x2 + 1] = interpolate(mask, size of the box, "bilinear"), clipped to the image
//       pasted = cat([pasted, image])
//
// Each step copies all images before it. Bilinear interpolation is rows @ mask @ columns, where each row and column
// inside the box has two nonzero weights: a file gets two matrix products for all masks, a session a kernel. Boxes are
// integers and overlap with the image.
#include <algorithm>
#include <limits>
#include <vector>

#include "core/pattern.h"

namespace polyop {
namespace {

std::optional<PatternMatch> Match(const Graph&, const GraphNode& loop) {
  const std::vector<LoopState> states = StatesOf(loop);
  const LoopState* grown = nullptr;
  for (const LoopState& state : states) {
    const GraphNode* const joined = Producer(state.after, {"Concat"});
    if (joined == nullptr || joined->input(0) != state.before) continue;
    if (grown != nullptr) return std::nullopt;
    grown = &state;
  }
  const GraphNode* resize = nullptr;
  for (const GraphNode& node : BodyOf(loop).nodes) {
    if (node.type != "Resize") continue;
    if (resize != nullptr) return std::nullopt;
    resize = &node;
  }
  if (grown == nullptr || resize == nullptr || resize->Text("mode", "nearest") != "linear") return std::nullopt;
  if (!IsRead(grown->last)) return std::nullopt;
  const auto is_other = [&](const GraphValue* value) { return value != grown->last && IsRead(value); };
  if (std::any_of(loop.outputs.begin(), loop.outputs.end(), is_other)) return std::nullopt;
  const std::string mode = resize->Text("coordinate_transformation_mode", "half_pixel");
  if (mode != "half_pixel" && mode != "pytorch_half_pixel") return std::nullopt;
  if (grown->first->rank() != 3 || (*grown->first->shape())[0] != 0) return std::nullopt;
  std::vector<const GraphValue*> masks, boxes, read = loop.inputs;
  read.insert(read.end(), loop.captured.begin(), loop.captured.end());
  for (const GraphValue* const value : read) {
    if (value == nullptr || value->is_constant || value->shape() == nullptr) continue;
    const Shape& shape = *value->shape();
    // Sizes of padded masks are often not known.
    const bool may_be_masks = shape.rank() == 4 && (shape[1] == 1 || shape[1] == kUnknownExtent);
    auto* const found = may_be_masks ? &masks : shape.rank() == 2 && shape[1] == 4 ? &boxes : nullptr;
    if (found != nullptr && std::find(found->begin(), found->end(), value) == found->end()) found->push_back(value);
  }
  if (masks.size() != 1 || boxes.size() != 1) return std::nullopt;
  PatternMatch match;
  match.inputs = {masks[0], boxes[0]};
  if (!grown->first->is_constant) match.inputs.push_back(grown->first);
  match.outputs = {grown->last};
  const int64_t height = (*grown->first->shape())[1], width = (*grown->first->shape())[2];
  match.parameters = {{"keeps_single", AttrValue::Int(mode == "half_pixel")},
                      {"height", AttrValue::Int(height)},
                      {"width", AttrValue::Int(width)}};
  match.work = static_cast<double>(height * width);
  // The number of masks is that of the boxes.
  const Shape& of_masks = *masks[0]->shape();
  const int64_t known = std::max((*boxes[0]->shape())[0], of_masks[0]);
  constexpr int64_t kUnknown = std::numeric_limits<int64_t>::min();
  const int64_t count = known >= 0 ? known : kUnknown;
  const int64_t rows = of_masks[2] != kUnknownExtent ? of_masks[2] : kUnknown + 1;
  const int64_t columns = of_masks[3] != kUnknownExtent ? of_masks[3] : kUnknown + 2;
  match.shapes = {{count, 1, rows, columns}, {count, 4}};
  if (match.inputs.size() > 2) match.shapes.push_back({0, height, width});
  return match;
}

// ---- In sessions ----------------------------------------------------------------------------------------------------

// The two rows (or columns) of a mask that a row of the image is between; both weights are 0 outside the box.
struct Taps {
  int64_t low = 0, high = 0;
  float low_weight = 0, high_weight = 0;
};

class Paste : public StandardKernel {
 public:
  Paste(bool keeps_single, int64_t height, int64_t width)
      : keeps_single_(keeps_single), height_(height), width_(width) {}

  Status Run(std::span<const AnyTensor> inputs, OutputSource& outputs, const Context* context) const override {
    const AnyTensor &masks = inputs[0], &boxes = inputs[1];
    const int64_t count = masks.shape[0], rows = masks.shape[2], columns = masks.shape[3];
    const int64_t height = inputs.size() > 2 ? inputs[2].shape[1] : height_;
    const int64_t width = inputs.size() > 2 ? inputs[2].shape[2] : width_;
    if (masks.shape[1] != 1) return InvalidArgument("expected masks [N, 1, H, W], got ", ToString(masks.shape));
    if (boxes.shape[0] < count) return InvalidArgument("expected ", count, " boxes, got ", boxes.shape[0]);
    void* data = nullptr;
    POLYOP_RETURN_IF_ERROR(outputs.Allocate(0, DType::kF32, {count, height, width}, &data));
    std::vector<Taps> across;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t* const box = static_cast<const int64_t*>(boxes.data) + 4 * i;
      for (int64_t x = 0; x < width; ++x) across.push_back(TapsOf(x, box[0], box[2], columns));
    }
    const auto paste = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float* const mask = static_cast<const float*>(masks.data) + i * rows * columns;
        const int64_t* const box = static_cast<const int64_t*>(boxes.data) + 4 * i;
        float* to = static_cast<float*>(data) + i * height * width;
        for (int64_t y = 0; y < height; ++y, to += width) {
          const Taps v = TapsOf(y, box[1], box[3], rows);
          const float *const low = mask + v.low * columns, *const high = mask + v.high * columns;
          for (int64_t x = 0; x < width; ++x) {
            const Taps& h = across[static_cast<size_t>(i * width + x)];
            to[x] = v.low_weight * (h.low_weight * low[h.low] + h.high_weight * low[h.high]) +
                    v.high_weight * (h.low_weight * high[h.low] + h.high_weight * high[h.high]);
          }
        }
      }
    };
    context != nullptr ? context->ParallelFor(count, 1, paste) : paste(0, count);
    return Status::Ok();
  }

 private:
  Taps TapsOf(int64_t position, int64_t begin, int64_t end, int64_t count) const {
    const int64_t length = std::max<int64_t>(end - begin + 1, 1);
    position -= begin;
    if (position < 0 || position >= length) return {};
    const float scale = static_cast<float>(count) / static_cast<float>(length);
    float at = (static_cast<float>(position) + 0.5f) * scale - 0.5f;
    if (!keeps_single_ && length == 1) at = 0;
    at = std::clamp(at, 0.0f, static_cast<float>(count - 1));
    const auto low = static_cast<int64_t>(at);
    const float high_weight = at - static_cast<float>(low);
    return {low, std::min(low + 1, count - 1), 1 - high_weight, high_weight};
  }

  const bool keeps_single_;  // a mask that covers one row shows its middle, not its first row
  const int64_t height_, width_;
};

std::unique_ptr<StandardKernel> MakeKernel(const PatternMatch& match) {
  const bool fits = match.inputs[0]->known.dtype == DType::kF32 && match.inputs[1]->known.dtype == DType::kI64;
  const int64_t height = match.Parameter("height"), width = match.Parameter("width");
  if (!fits || (match.inputs.size() == 2 && (height < 0 || width < 0))) return nullptr;
  return std::make_unique<Paste>(match.Parameter("keeps_single") != 0, height, width);
}

// Draws boxes that overlap with the image, some partly outside of it and some of one pixel.
void Draw(const PatternMatch& match, std::mt19937& random, std::span<const AnyTensor> inputs) {
  const bool is_input = inputs.size() > 2;
  const int64_t extents[] = {is_input ? inputs[2].shape[2] : match.Parameter("width"),
                             is_input ? inputs[2].shape[1] : match.Parameter("height")};
  auto* box = static_cast<int64_t*>(inputs[1].data);
  for (int64_t i = 0; i < inputs[1].shape[0]; ++i, box += 4) {
    for (int d = 0; d < 2; ++d) {
      std::uniform_int_distribution<int64_t> begin(-3, extents[d] - 1), length(0, extents[d]);
      box[d] = begin(random);
      const int64_t most = std::max(box[d], extents[d] + 2);
      box[d + 2] = std::max<int64_t>(random() % 5 == 0 ? box[d] : std::min(box[d] + length(random), most), 0);
    }
  }
}

POLYOP_PATTERN(paste_masks, {"mask pasting", {"Loop"}, Match, MakeKernel, 0, false, Draw});

}  // namespace
}  // namespace polyop
