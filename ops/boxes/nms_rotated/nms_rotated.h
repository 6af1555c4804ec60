// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "core/operator.h"

namespace polyop {

/// Greedy non-maximum suppression of rotated boxes, of every class of every image or of one set.
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
      Attr("iou_threshold", &NmsRotated::iou_threshold,
           "a kept box suppresses boxes whose IoU with it exceeds this threshold")
          .Between(0, 1),
      Attr("score_threshold", &NmsRotated::score_threshold, "only boxes with a score greater than this take part")
          .MayBeInfinite(),
  };
  static constexpr Doc kDoc = {
      .summary = "Greedy non-maximum suppression of rotated boxes.",
      .semantics = R"(Boxes are (centre x, centre y, width, height, angle), the angle in radians from the x axis
          towards the y axis. For boxes [B, N, 5], keep holds rows (image, class, box), ordered by image, class and
          descending score; for boxes [N, 5], the indices of the kept boxes by descending score. Among equal scores
          the lower index comes first.

          The IoU is compared in double precision. A box whose area is below 1e-14, or with a NaN or infinite
          component, overlaps nothing. A NaN score is not above the threshold.)",
      .source =
          "`mmcv.ops.nms_rotated`; J. Ma et al., Arbitrary-Oriented Scene Text Detection via Rotation Proposals, 2018",
      .differences = R"(MMDeploy's kernel indexes its suppression flags by position in one loop and by box index in
          another. It therefore suppresses distant boxes, and boxes without area suppress others.)",
      .not_portable = R"(No standard operator intersects rotated boxes. Clipping all pairs by their eight edges
          would take hundreds of nodes, and the suppression a Loop with one iteration per box.)",
  };
};

}  // namespace polyop
