// SPDX-License-Identifier: Apache-2.0
// What the elements of an input are, as far as its name and its last extent state it. An operator states it by the
// names in its signature, "rois: T[R, 5]". Synthetic inputs follow from it: random numbers are not valid RoIs.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "core/signature.h"

namespace polyop {

/// Returns the role of an input, or "":
///   boxes          [..., 4]   x1, y1, x2, y2
///   rotated_boxes  [..., 5]   x, y, width, height, angle; of 7 columns where an attribute chooses: as boxes3d
///   boxes3d        [..., 7]   x, y, z, three sizes, heading
///   quadrilaterals [..., 8]   four corners
///   rois           [..., 5]   the index of an image and a box;  rotated_rois [..., 6]: and a rotated box
///   bezier_rois    [..., 17]  the index of an image and 8 points
///   batch_index    the index of an image, or one for each row of another input
///   probability    scores in [0, 1]
///   points         coordinates
///   decay_rates    [..., states]  factors in the exponent of a recurrence, not positive: otherwise its state grows
///   step_sizes     of a recurrence, not negative
constexpr std::string_view RoleOf(const TensorSpec& input) {
  const auto is_called = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), input.name) != names.end();
  };
  const std::string_view columns = input.rank > 0 ? input.dims[static_cast<size_t>(input.rank - 1)].text : "";
  if (is_called({"batch_indices", "batch_index"})) return "batch_index";
  if (is_called({"scores", "score"})) return "probability";
  if (is_called({"A"}) && columns == "states") return "decay_rates";
  if (is_called({"delta", "delta_bias"})) return "step_sizes";
  if (is_called({"points", "xyz", "xyz1", "xyz2", "center_xyz", "new_xyz", "pos"})) return "points";
  if (is_called({"rois"})) {
    if (columns == "5") return "rois";
    if (columns == "6") return "rotated_rois";
    if (columns == "17") return "bezier_rois";
  }
  if (is_called({"boxes", "boxes_a", "boxes_b", "rois", "best_bboxes", "polygons", "anchors"})) {
    if (columns == "4") return "boxes";
    if (columns == "5" || columns == "2*dimensions + 1") return "rotated_boxes";
    if (columns == "7") return "boxes3d";
    if (columns == "8") return "quadrilaterals";
  }
  return "";
}

}  // namespace polyop
