// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "core/operator.h"
#include "ops/boxes/logit.h"

namespace polyop {

/// Decodes the boxes of a PointPillars head from anchors on a grid.
struct DecodeBbox3d {
  static constexpr int kMaxAnchors = 64;

  std::array<float, 6> point_cloud_range{0, -40, -3, 70.4f, 40, 1};
  List<float, 4 * kMaxAnchors> anchors{{3.9f, 1.6f, 1.56f, 0, 3.9f, 1.6f, 1.56f, 1.5707964f}, 8};
  List<float, kMaxAnchors / 2> anchor_bottom_height{{-1.78f}, 1};
  float dir_offset = 0.78539f;
  float dir_limit_offset = 0;
  int64_t num_dir_bins = 2;
  float score_thresh = 0.1f;

  static constexpr const char* kName = "decode_bbox3d";
  static constexpr Signature kSignature =
      "cls: T[N, H, W, K], box: T[N, H, W, 7 * D / 2], dir: T[N, H, W, D] -> boxes: T[N, H * W * D / 2, 9], "
      "num: i32[N]";
  static constexpr NodeName kNodes[] = {"polyop::DecodeBbox3DPlugin", "::DecodeBbox3DPlugin"};
  static constexpr std::tuple kAttributes = {
      Attr("point_cloud_range", &DecodeBbox3d::point_cloud_range,
           "minimum x, y, z and maximum x, y, z; the grid spans x and y, z is ignored")
          .Required(),
      Attr("anchors", &DecodeBbox3d::anchors, "dx, dy, dz and rotation of each of the A anchors of a cell").Required(),
      Attr("anchor_bottom_height", &DecodeBbox3d::anchor_bottom_height,
           "z of the bottom face, one value for every two anchors")
          .Required(),
      Attr("dir_offset", &DecodeBbox3d::dir_offset, "start of the first direction, in radians").Required(),
      Attr("dir_limit_offset", &DecodeBbox3d::dir_limit_offset,
           "position within a direction at which yaw wraps around, in periods")
          .Required(),
      Attr("num_dir_bins", &DecodeBbox3d::num_dir_bins, "number of directions of a full rotation")
          .AtLeast(1)
          .Required(),
      Attr("score_thresh", &DecodeBbox3d::score_thresh, "minimum score of a returned box").Required(),
  };
  static constexpr Doc kDoc = {
      .summary = "Decodes the boxes of a PointPillars head and keeps those above a score threshold.",
      .semantics = R"(Each cell of the H x W grid has A anchors, K = A * C class logits, 7 * A box offsets and 2 * A
          direction logits. An anchor's class is that of its largest logit (the first of equal ones), and its score the
          sigmoid of that logit. The anchor is kept if its score is at least `score_thresh`; logits are compared. With d
          = sqrt(dx² + dy²), its box is (x + b0 * d, y + b1 * d, z + b2 * dz, exp(b3) * dx, exp(b4) * dy, exp(b5) * dz,
          yaw), where (x, y, z) is the anchor's centre. Rows and columns of the grid are spaced evenly from the minimum
          to the maximum y and x; a single row or column is at the minimum. With r = b6 + rotation - dir_offset and
          period = 2π / num_dir_bins, yaw = r - floor(r / period + dir_limit_offset) * period + dir_offset + period *
          label, where label is 0 if the first direction logit is larger, else 1. A row of `boxes` is (x, y, z, dx, dy,
          dz, yaw, class, score). Kept anchors are ordered by row, column and anchor; rows from `num` on are 0.
          Everything is computed in fp64 and rounded once. A NaN logit is below every threshold; NaN in `box` makes the
          values computed from it NaN, and NaN in `dir` selects label 1. Lengths are in the unit of `point_cloud_range`
          and `anchors`.)",
      .source = "DecodeBbox3DPlugin of TensorRT, for NVIDIA TAO's PointPillars; Lang et al., PointPillars, 2019",
      .differences = R"(The plugin writes boxes in a non-deterministic order and does not initialise the rows after
          them, divides by 0 for a grid of one row or column, and takes the number of classes from the length of
          'anchor_bottom_height'.)",
  };

  int64_t num_anchors() const { return anchors.size() / 4; }
  float MinScore() const { return MinLogit(score_thresh); }

  Status Check() const {
    if (anchors.size() == 0 || anchors.size() % 8 != 0) {
      return InvalidArgument("attribute 'anchors': expected dx, dy, dz and rotation of an even number of anchors, got ",
                             anchors.size(), " values");
    }
    if (anchor_bottom_height.size() != num_anchors() / 2) {
      return InvalidArgument("attribute 'anchor_bottom_height': expected one value for every two of the ",
                             num_anchors(), " 'anchors', got ", anchor_bottom_height.size(), " values");
    }
    return Status::Ok();
  }

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape &cls = inputs[0].shape, &dir = inputs[2].shape;
    if (dir[3] != 2 * num_anchors()) {
      return InvalidArgument("'dir': expected ", 2 * num_anchors(), " in dimension 3, two for each of the ",
                             num_anchors(), " 'anchors', got ", dir[3], " (shape ", ToString(dir), ")");
    }
    if (cls[3] % num_anchors() != 0) {
      return InvalidArgument("'cls': expected a multiple of the ", num_anchors(), " 'anchors' in dimension 3, got ",
                             cls[3], " (shape ", ToString(cls), ")");
    }
    const std::optional<int64_t> rows = Shape{cls[1], cls[2], num_anchors()}.NumElements();
    if (!rows || *rows > INT32_MAX) {
      return InvalidArgument("'cls': expected at most 2147483647 anchors per image, got shape ", ToString(cls));
    }
    return Status::Ok();
  }
};

}  // namespace polyop
