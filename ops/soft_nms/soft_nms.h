#pragma once

#include "core/operator.h"

namespace polyop {

/// Soft-NMS: overlapping boxes lose score instead of being removed.
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
      Attr("iou_threshold", &SoftNms::iou_threshold, "naive and linear act on boxes of this IoU or more").Between(0, 1),
      Attr("sigma", &SoftNms::sigma, "gaussian: how slowly the score falls with the overlap").GreaterThan(0),
      Attr("min_score", &SoftNms::min_score, "a box goes when its score falls below"),
      Attr("method", &SoftNms::method, "how overlap lowers scores").Codes("naive", "linear", "gaussian"),
      Attr("offset", &SoftNms::offset, "added to every width and height: 1 where x2, y2 are the last pixel")
          .Between(0, 1),
  };
  static constexpr Doc kDoc = {
      .summary = "Lowers the scores of boxes that overlap better ones, and drops those that fall below min_score.",
      .semantics =
          "Each turn takes the box of the highest score (of equal ones the lowest index), which is always kept, and "
          "multiplies the scores of the others by a weight of their IoU with it: naive 0 if IoU >= iou_threshold; "
          "linear 1 - IoU if IoU >= iou_threshold; gaussian exp(-IoU^2 / sigma). A box goes as soon as its score is "
          "below min_score. `dets` holds (x1, y1, x2, y2, lowered score), `keep` the indices, in the order of the "
          "turns. The first box is returned even if it is below min_score. The IoU is that of real numbers, rounded "
          "to float; it is 0 for boxes that do not touch, have a NaN coordinate or an infinite area. Scores are "
          "rounded to float each turn. A weight below 2^-126 is 0, and a score times 0 is 0; so infinite scores "
          "stay what they are until a weight is 0. +inf comes first and -inf last, and a NaN score goes at once.",
      .source = "Bodla et al., Soft-NMS: Improving Object Detection With One Line of Code, 2017; `mmcv.ops.soft_nms`",
      .differences =
          "MMCV swaps boxes while it works, so that equal scores come in an order that depends on the "
          "other boxes; here the lower index always comes first.",
      .not_portable =
          "Every turn rounds all scores and takes one box: standard operators say it only as a Loop of a "
          "turn for each box, each of which writes all scores anew.",
  };
};

}  // namespace polyop
