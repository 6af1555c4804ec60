#pragma once

#include <limits>

#include "core/operator.h"

namespace polyop {

/// Greedy non-maximum suppression of rotated boxes: of every class of every picture, or of one set.
struct NmsRotated {
  float iou_threshold = 0.5f;
  float score_threshold = -std::numeric_limits<float>::infinity();

  static constexpr const char* kName = "nms_rotated";
  static constexpr Signature kSignatures[] = {
      "boxes: f32[B, N, 5], scores: f32[B, C, N] -> keep: i64[K<=B * C * N, 3]",
      "boxes: f32[N, 5], scores: f32[N] -> keep: i64[K<=N]",
  };
  static constexpr NodeName kNodes[] = {"mmdeploy::NMSRotated", "mmcv::NMSRotated"};
  static constexpr std::tuple kAttributes = {
      Attr("iou_threshold", &NmsRotated::iou_threshold, "a box goes when its IoU with a kept one is greater")
          .Between(0, 1),
      Attr("score_threshold", &NmsRotated::score_threshold, "only boxes of a greater score take part").MayBeInfinite(),
  };
  static constexpr Doc kDoc = {
      .summary = "Keeps the best rotated box of every group of overlapping ones.",
      .semantics =
          "Boxes are (centre x, centre y, width, height, angle), the angle in radians from the x axis towards the y "
          "axis. For boxes [B, N, 5] the result holds rows (picture, class, box) in the order of pictures, classes and "
          "falling scores; for boxes [N, 5] the indices of the kept boxes by falling score. Of equal scores the lower "
          "index comes first. IoU is decided in double precision. A box of an area below 1e-14, or with a coordinate "
          "that is no number, overlaps nothing. A NaN score is not above the threshold.",
      .source =
          "`mmcv.ops.nms_rotated`; J. Ma et al., Arbitrary-Oriented Scene Text Detection via Rotation Proposals, 2018",
      .differences =
          "MMDeploy's kernel looks its marks up by place in one loop and by index in another, so it suppresses distant "
          "boxes, and a box of no area suppresses others.",
      .not_portable =
          "No standard operator intersects rotated boxes; cut by their eight edges, all pairs of them would "
          "take hundreds of nodes, and the suppression a Loop of a turn for each box.",
  };
};

}  // namespace polyop
