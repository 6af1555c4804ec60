#pragma once

#include "core/operator.h"
#include "families/points/point_count.h"

namespace polyop {

/// Features of points as weighted sums of those of three others.
struct ThreeInterpolate {
  static constexpr const char* kName = "three_interpolate";
  static constexpr Signature kSignature =
      "features: T[B, C, M], idx: I[B, N, 3], weight: T[B, N, 3] -> interpolated: T[B, C, N]";
  static constexpr NodeName kNodes[] = {"polyop::ThreeInterpolate"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Features of N points, each a weighted sum of those of three of M points.",
      .semantics =
          "interpolated[b, c, n] = the sum over k of weight[b, n, k] * features[b, c, idx[b, n, k]], in fp32. Weights "
          "are "
          "taken as they are; they need not add up to 1. An index that is negative or not below M is an error. `idx` "
          "is "
          "i32 or i64. In PyTorch there are gradients by `features` and by `weight`.",
      .source =
          "`mmcv.ops.three_interpolate`; C. Qi et al., PointNet++: Deep Hierarchical Feature Learning on Point Sets in "
          "a Metric Space, 2017",
      .differences =
          "MMCV has no kernel for CPUs, takes i32 indices only, checks none, and has no gradient by `weight`.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckPointCount("features", inputs[0], 2); }
};

}  // namespace polyop
