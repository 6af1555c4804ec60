// How much overlap lowers a score: one answer on CPU and GPU.
#pragma once

#include <cfloat>
#include <cmath>

#include "families/boxes/boxes_overlap.h"
#include "ops/soft_nms/soft_nms.h"

namespace polyop {

/// The IoU, found in double and rounded to float. 0 for boxes that do not touch, have a NaN coordinate, or whose areas
/// are infinite.
POLYOP_HD inline float ExactIou(const float* a, const float* b, float offset) {
  const BoxOverlap overlap = BoxOverlap::Of(a, b, static_cast<double>(offset));
  const auto iou = static_cast<float>(overlap.intersection / overlap.united);
  return overlap.intersection > 0 && iou > 0 ? iou : 0;
}

/// Where IoUs in float are not taken for what they are: their error is below 1e-6 if the union is within
/// (kLeastUnion, kMostUnion); so near to the threshold, and to 1, where linear weights vanish, ExactIou decides.
struct IouDoubt {
  static constexpr float kLeastUnion = 1e-30f, kMostUnion = 1e38f, kMargin = 2e-6f;
  static constexpr float kNearlyOne = 1 - kMargin;

  POLYOP_HD static bool Of(float iou, float united, float threshold) {
    const bool in_range = united > kLeastUnion && united < kMostUnion;  // not NaN
    return !in_range || std::fabs(iou - threshold) <= kMargin || iou >= kNearlyOne;
  }
};

/// Weights below this are 0: what exp gives there depends on how it is calculated.
inline constexpr float kLeastWeight = FLT_MIN;

/// What is left of a score. A weight of 0 gives 0 for infinite scores too.
POLYOP_HD inline float LoweredScore(float score, float weight) { return weight >= kLeastWeight ? score * weight : 0; }

}  // namespace polyop
