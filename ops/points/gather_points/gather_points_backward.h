// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/points/gather_points/gather_points.h"

namespace polyop {

/// The gradient with respect to the features: each point gets the sum of the gradients of its copies.
struct GatherPointsBackward : GradientOf<GatherPoints> {
  static constexpr const char* kName = "gather_points_backward";
  static constexpr Signature kSignature =
      "grad_gathered: T[B, C, M], features: T[B, C, N], idx: I[B, M] -> grad_features: T[B, C, N]";
};

}  // namespace polyop
