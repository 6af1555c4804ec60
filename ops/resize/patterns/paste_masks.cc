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
#include <cmath>

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
    auto* const found = shape.rank() == 4 && shape[1] == 1   ? &masks
                        : shape.rank() == 2 && shape[1] == 4 ? &boxes
                                                             : nullptr;
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
  return match;
}

POLYOP_PATTERN(paste_masks, {"mask pasting", {"Loop"}, Match, nullptr, 0, true});

}  // namespace
}  // namespace polyop
