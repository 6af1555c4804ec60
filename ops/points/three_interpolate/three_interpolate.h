// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/points/point_count.h"

namespace polyop {

/// Interpolates features of points as weighted sums of those of three others.
struct ThreeInterpolate {
  static constexpr const char* kName = "three_interpolate";
  static constexpr Signature kSignature =
      "features: T[B, C, M], idx: I[B, N, 3], weight: T[B, N, 3] -> interpolated: T[B, C, N]";
  static constexpr NodeName kNodes[] = {"polyop::ThreeInterpolate"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Interpolates the features of N points, each as a weighted sum of the features of three of M points.",
      .semantics = R"(interpolated[b, c, n] is the sum over k of weight[b, n, k] * features[b, c, idx[b, n, k]], in
          fp32. Weights are used as they are; they need not add up to 1. It is an error if an index is negative or
          not less than M. `idx` is i32 or i64. In PyTorch, the operator is differentiable with respect to
          `features` and `weight`.)",
      .source = R"(`mmcv.ops.three_interpolate`; C. Qi et al., PointNet++: Deep Hierarchical Feature Learning on
          Point Sets in a Metric Space, 2017)",
      .differences = R"(MMCV has no CPU kernel, supports only i32 indices, does not check them, and has no gradient
          with respect to `weight`.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckPointCount("features", inputs[0], 2); }
};

}  // namespace polyop
