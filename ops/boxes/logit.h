// SPDX-License-Identifier: Apache-2.0
// Thresholds of scores that are given as logits.
#pragma once

#include <cmath>
#include <limits>

namespace polyop {

/// Returns the smallest logit whose sigmoid is at least `probability`, or NaN, which no logit reaches, above 1.
inline float MinLogit(float probability) {
  if (probability <= 0) return -std::numeric_limits<float>::infinity();
  const double p = probability;
  return p > 1 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(std::log(p) - std::log1p(-p));
}

}  // namespace polyop
