// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Soft-NMS: lowers the scores of overlapping boxes instead of removing them.
struct SoftNms {
  enum class Method { kNaive, kLinear, kGaussian };
  float iou_threshold = 0.3f;
  float sigma = 0.5f;
  float min_score = 1e-3f;
  Method method = Method::kLinear;
  int64_t offset = 0;

  static constexpr const char* kName = "soft_nms";
  static constexpr Signature kSignature = "boxes: f32[N, 4], scores: f32[N] -> dets: f32[K<=N, 5], keep: i64[K]";
  static constexpr NodeName kNodes[] = {"mmcv::SoftNonMaxSuppression"};
  static constexpr std::tuple kAttributes = {
      Attr("iou_threshold", &SoftNms::iou_threshold,
           "naive and linear lower the scores of boxes whose IoU is at least this")
          .Between(0, 1),
      Attr("sigma", &SoftNms::sigma, "gaussian: the larger, the less an overlap lowers the score").GreaterThan(0),
      Attr("min_score", &SoftNms::min_score, "boxes whose score is below this are dropped"),
      Attr("method", &SoftNms::method, "how an overlap lowers the score").Codes("naive", "linear", "gaussian"),
      Attr("offset", &SoftNms::offset, "added to every width and height: 1 if (x2, y2) is the last pixel")
          .Between(0, 1),
  };
  static constexpr Doc kDoc = {
      .summary = R"(Soft-NMS: lowers the scores of boxes that overlap better ones and drops boxes whose score falls
          below min_score.)",
      .semantics = R"(Each step selects the remaining box of the highest score (the lowest index among equal
          scores). The box is kept, and the scores of the other boxes are multiplied by a weight that depends on
          their IoU with it: naive: 0 if IoU >= iou_threshold; linear: 1 - IoU if IoU >= iou_threshold; gaussian:
          exp(-IoU^2 / sigma). A box is dropped as soon as its score is below min_score. The first box is returned
          even if its score is below min_score. `dets` holds (x1, y1, x2, y2, lowered score) and `keep` the indices,
          in the order of selection.

          The IoU is computed exactly and rounded to float. It is 0 for boxes that do not touch, have a NaN
          coordinate or an infinite area. Scores are rounded to float in each step. A weight below 2^-126 is 0, and
          a score times 0 is 0; infinite scores are therefore unchanged until a weight is 0. +inf comes first and
          -inf last, and a box with a NaN score is dropped at once.)",
      .source = "Bodla et al., Soft-NMS: Improving Object Detection With One Line of Code, 2017; `mmcv.ops.soft_nms`",
      .differences = R"(MMCV swaps boxes in place, so the order of equal scores depends on the other boxes; here the
          lower index always comes first.)",
      .not_portable = R"(Every step rounds all scores and selects one box. Standard operators can express this only
          as a Loop with one iteration per box, each of which rewrites all scores.)",
  };
};

}  // namespace polyop
