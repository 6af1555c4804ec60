// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/points/assign_score_withk/assign_score_withk.h"

namespace polyop {

/// The gradients with respect to scores and features. Neighbours out of range have none.
struct AssignScoreWithkBackward : GradientOf<AssignScoreWithk> {
  static constexpr const char* kName = "assign_score_withk_backward";
  static constexpr Signature kSignature =
      "grad_output: T[B, O, P, K], scores: T[B, P, K, M], point_features: T[B, N, M, O], "
      "center_features: T[B, N, M, O], knn_idx: I[B, P, K] -> grad_scores?: T[B, P, K, M], "
      "grad_point_features?: T[B, N, M, O], grad_center_features?: T[B, N, M, O]";
};

}  // namespace polyop
