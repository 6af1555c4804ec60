#pragma once

#include "core/operator.h"

namespace polyop {

/// Weighted sums of neighbours' features from a bank of weight matrices.
struct AssignScoreWithk {
  static constexpr const char* kName = "assign_score_withk";
  static constexpr Signature kSignature =
      "scores: T[B, P, K, M], point_features: T[B, N, M, O], center_features: T[B, N, M, O], knn_idx: I[B, P, K] "
      "-> output: T[B, O, P, K]";
  static constexpr NodeName kNodes[] = {"polyop::AssignScoreWithK"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Features of neighbours less those of their centre, summed over M weight matrices by scores (PAConv).",
      .semantics =
          "With n = knn_idx[b, p, k] and the centre c = knn_idx[b, p, 0], output[b, o, p, k] is the sum over m of "
          "scores[b, p, k, m] * (point_features[b, n, m, o] - center_features[b, c, m, o]). It is 0 where n or c is "
          "not in [0, N). `knn_idx` is i32 or i64. Sums are in float. In PyTorch there are gradients by scores and "
          "both features.",
      .source =
          "Xu et al., PAConv: Position Adaptive Convolution with Dynamic Kernel Assembling on Point Clouds, 2021; "
          "`mmcv.ops.assign_score_withk`",
      .differences =
          "MMCV reads the features of a centre that is out of range. Its argument `aggregate` is without effect, so "
          "there is none here: results are sums.",
  };
};

}  // namespace polyop
