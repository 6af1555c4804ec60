// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Gathers the features of selected points.
struct GatherPoints {
  static constexpr const char* kName = "gather_points";
  static constexpr Signature kSignature = "features: T[B, C, N], idx: I[B, M] -> gathered: T[B, C, M]";
  static constexpr NodeName kNodes[] = {"polyop::GatherPoints"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Gathers the features of M selected points per batch element.",
      .semantics = R"(gathered[b, c, m] = features[b, c, idx[b, m]]. An index that is not in [0, N) is an error. `idx`
          is i32 or i64. In PyTorch, differentiable with respect to `features`.)",
      .source = "`mmcv.ops.gather_points`; `features.gather(2, idx[:, None].expand(-1, C, -1))` in torch",
      .differences = "MMCV has no CPU kernel, accepts i32 indices only and does not check them.",
  };
};

}  // namespace polyop
