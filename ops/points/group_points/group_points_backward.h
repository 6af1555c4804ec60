// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/points/group_points/group_points.h"

namespace polyop {

/// The gradient with respect to the features: each point gets the sum of the gradients of its copies.
struct GroupPointsBackward : GradientOf<GroupPoints> {
  static constexpr const char* kName = "group_points_backward";
  static constexpr Signature kSignature =
      "grad_grouped: T[B, C, M, K], features: T[B, C, N], idx: I[B, M, K] -> grad_features: T[B, C, N]";
};

}  // namespace polyop
