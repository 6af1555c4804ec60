#pragma once

#include <array>

#include "core/operator.h"
#include "families/boxes/logit.h"

namespace polyop {

/// The boxes of a PointPillars head, from anchors on a grid.
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
           "least x, y, z and greatest x, y, z; the grid spans x and y, z is not looked at")
          .Required(),
      Attr("anchors", &DecodeBbox3d::anchors, "dx, dy, dz and rotation of each of a cell's A anchors").Required(),
      Attr("anchor_bottom_height", &DecodeBbox3d::anchor_bottom_height, "z of the bottom of every two anchors")
          .Required(),
      Attr("dir_offset", &DecodeBbox3d::dir_offset, "where the first direction begins, in radians").Required(),
      Attr("dir_limit_offset", &DecodeBbox3d::dir_limit_offset,
           "where a yaw is cut off within its direction, in periods")
          .Required(),
      Attr("num_dir_bins", &DecodeBbox3d::num_dir_bins, "directions of a full turn").AtLeast(1).Required(),
      Attr("score_thresh", &DecodeBbox3d::score_thresh, "only boxes of at least this score are given").Required(),
  };
  static constexpr Doc kDoc = {
      .summary = "Decodes the boxes of a PointPillars head and keeps those of a score.",
      .semantics =
          "Each cell of the H x W grid has A anchors, K = A * C class logits, 7 * A box offsets and 2 * A direction "
          "logits. An anchor's class is that of its largest logit, the first of equal ones, its score the logit's "
          "sigmoid; it is kept if the score is at least score_thresh, compared as logits. With d = sqrt(dx² + dy²) its "
          "box is (x + b0 * d, y + b1 * d, z + b2 * dz, exp(b3) * dx, exp(b4) * dy, exp(b5) * dz, yaw), z that of the "
          "anchor's middle. Rows and columns of the grid go from the least to the greatest y and x; a single one lies "
          "at the least. With r = b6 + rotation - dir_offset and a period of 2π / num_dir_bins, yaw = r - floor(r / "
          "period + dir_limit_offset) * period + dir_offset + period * label, label 0 where the first direction logit "
          "is larger, else 1. A row of boxes is (x, y, z, dx, dy, dz, yaw, class, score). Kept anchors are in the "
          "order of rows, columns and anchors; rows from `num` on are 0. All is computed in fp64 and rounded once. "
          "A NaN logit is below any threshold; NaN in box or dir gives what it touches NaN, or direction 1. "
          "In meters where the range and the anchors are.",
      .source = "DecodeBbox3DPlugin of TensorRT, for NVIDIA TAO's PointPillars; Lang et al., PointPillars, 2019",
      .differences =
          "The plugin writes boxes in an order that changes from run to run, leaves garbage behind them, divides by 0 "
          "for a grid of one row or column, and takes as many classes as 'anchor_bottom_height' has values.",
  };

  int64_t num_anchors() const { return anchors.size() / 4; }
  float LeastScore() const { return LeastLogit(score_thresh); }

  Status Check() const {
    if (anchors.size() == 0 || anchors.size() % 8 != 0) {
      return InvalidArgument("attribute 'anchors' has ", anchors.size(),
                             " values, wanted dx, dy, dz and rotation of an even number of anchors");
    }
    if (anchor_bottom_height.size() != num_anchors() / 2) {
      return InvalidArgument("attribute 'anchor_bottom_height' has ", anchor_bottom_height.size(),
                             " values, wanted one for every two of the ", num_anchors(), " 'anchors'");
    }
    return Status::Ok();
  }

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape &cls = inputs[0].shape, &dir = inputs[2].shape;
    if (dir[3] != 2 * num_anchors()) {
      return InvalidArgument("'dir' has shape ", ToString(dir), ", wanted ", 2 * num_anchors(),
                             " in dimension 3: two for each of the ", num_anchors(), " 'anchors'");
    }
    if (cls[3] % num_anchors() != 0) {
      return InvalidArgument("'cls' has shape ", ToString(cls), ", wanted a multiple of the ", num_anchors(),
                             " 'anchors' in dimension 3");
    }
    const std::optional<int64_t> rows = Shape{cls[1], cls[2], num_anchors()}.NumElements();
    if (!rows || *rows > INT32_MAX) {
      return InvalidArgument("'cls' has shape ", ToString(cls), ": a picture's anchors must fit 32 bits");
    }
    return Status::Ok();
  }
};

}  // namespace polyop
