// SPDX-License-Identifier: Apache-2.0
// The effect of an overlap on a score, identical on CPU and GPU.
#pragma once

#include <cmath>

#include "ops/boxes/boxes_overlap.h"
#include "ops/boxes/soft_nms/soft_nms.h"

namespace polyop {

/// Returns the IoU, computed in double and rounded to float. It is 0 for boxes that do not touch, have a NaN coordinate
/// or an infinite area.
POLYOP_HD inline float ExactIou(const float* a, const float* b, float offset) {
  const BoxOverlap overlap = BoxOverlap::Of(a, b, static_cast<double>(offset));
  const auto iou = static_cast<float>(overlap.intersection / overlap.united);
  return overlap.intersection > 0 && iou > 0 ? iou : 0;
}

/// Decides whether an IoU computed in float must be replaced by ExactIou. Its error is below 1e-6 if the union is in
/// (kMinUnion, kMaxUnion); it is in doubt near the threshold, and near 1, where linear weights vanish.
struct IouDoubt {
  static constexpr float kMinUnion = 1e-30f, kMaxUnion = 1e38f, kMargin = 2e-6f;
  static constexpr float kNearlyOne = 1 - kMargin;

  POLYOP_HD static bool Of(float iou, float united, float threshold) {
    const bool in_range = united > kMinUnion && united < kMaxUnion;  // not NaN
    return !in_range || std::fabs(iou - threshold) <= kMargin || iou >= kNearlyOne;
  }
};

/// Weights below this are 0, because results of exp in this range depend on its implementation.
inline constexpr float kMinWeight = 0x1p-126f;  // the smallest normal float

/// Returns the lowered score. A weight of 0 gives 0, also for infinite scores.
POLYOP_HD inline float LoweredScore(float score, float weight) { return weight >= kMinWeight ? score * weight : 0; }

}  // namespace polyop
