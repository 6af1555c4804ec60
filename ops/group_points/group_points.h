#pragma once

#include "core/operator.h"

namespace polyop {

/// Features of the points of groups.
struct GroupPoints {
  static constexpr const char* kName = "group_points";
  static constexpr Signature kSignature = "features: T[B, C, N], idx: I[B, M, K] -> grouped: T[B, C, M, K]";
  static constexpr NodeName kNodes[] = {"polyop::GroupPoints"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "The features of the K points of each of M groups.",
      .semantics =
          "grouped[b, c, m, k] = features[b, c, idx[b, m, k]]. An index that is negative or not below N is an error. "
          "`idx` is "
          "i32 or i64. In PyTorch there are gradients by `features`.",
      .source =
          "`mmcv.ops.grouping_operation`; C. Qi et al., PointNet++: Deep Hierarchical Feature Learning on Point Sets "
          "in "
          "a Metric Space, 2017",
      .differences =
          "MMCV has no kernel for CPUs, takes i32 indices only and checks none. Its form for stacked point clouds "
          "(`features_batch_cnt`) is not this operator.",
  };
};

}  // namespace polyop
