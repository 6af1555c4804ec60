// Scores that come as logits are compared as logits.
#pragma once

#include <cmath>
#include <limits>

namespace polyop {

/// The least logit whose sigmoid is at least `probability`: NaN, which nothing reaches, above 1.
inline float LeastLogit(float probability) {
  if (probability <= 0) return -std::numeric_limits<float>::infinity();
  const double p = probability;
  return p > 1 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(std::log(p) - std::log1p(-p));
}

}  // namespace polyop
