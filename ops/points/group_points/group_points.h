// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Gathers the features of the points of groups.
struct GroupPoints {
  static constexpr const char* kName = "group_points";
  static constexpr Signature kSignature = "features: T[B, C, N], idx: I[B, M, K] -> grouped: T[B, C, M, K]";
  static constexpr NodeName kNodes[] = {"polyop::GroupPoints"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Gathers the features of the K points of each of M groups.",
      .semantics = R"(grouped[b, c, m, k] = features[b, c, idx[b, m, k]]. An index that is not in [0, N) is an error.
          `idx` is i32 or i64. In PyTorch, differentiable with respect to `features`.)",
      .source = R"(`mmcv.ops.grouping_operation`; C. Qi et al., PointNet++: Deep Hierarchical Feature Learning on Point
          Sets in a Metric Space, 2017)",
      .differences = R"(MMCV has no CPU kernel, accepts i32 indices only and does not check them. Its variant for
          stacked point clouds (`features_batch_cnt`) is a different operator.)",
  };
};

}  // namespace polyop
