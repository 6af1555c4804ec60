// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Sums the features of neighbours, weighted by the scores of a bank of weight matrices.
struct AssignScoreWithk {
  static constexpr const char* kName = "assign_score_withk";
  static constexpr Signature kSignature =
      "scores: T[B, P, K, M], point_features: T[B, N, M, O], center_features: T[B, N, M, O], knn_idx: I[B, P, K] "
      "-> output: T[B, O, P, K]";
  static constexpr NodeName kNodes[] = {"polyop::AssignScoreWithK"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = R"(Subtracts the features of the centre from those of its neighbours and sums them over M weight
          matrices, weighted by scores (PAConv).)",
      .semantics = R"(Let n = knn_idx[b, p, k] and c = knn_idx[b, p, 0], the centre. output[b, o, p, k] is the sum over
          m of scores[b, p, k, m] * (point_features[b, n, m, o] - center_features[b, c, m, o]). The output is 0 where n
          or c is not in [0, N). `knn_idx` is i32 or i64. Accumulates in fp32. In PyTorch, differentiable with respect
          to `scores`, `point_features` and `center_features`.)",
      .source = R"(Xu et al., PAConv: Position Adaptive Convolution with Dynamic Kernel Assembling on Point Clouds,
          2021; `mmcv.ops.assign_score_withk`)",
      .differences = R"(MMCV reads out of bounds for a centre that is out of range. MMCV's argument `aggregate` has no
          effect and does not exist here: the result is always a sum.)",
  };
};

}  // namespace polyop
