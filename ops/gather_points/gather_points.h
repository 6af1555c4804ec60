#pragma once

#include "core/operator.h"

namespace polyop {

/// Features of chosen points.
struct GatherPoints {
  static constexpr const char* kName = "gather_points";
  static constexpr Signature kSignature = "features: T[B, C, N], idx: I[B, M] -> gathered: T[B, C, M]";
  static constexpr NodeName kNodes[] = {"polyop::GatherPoints"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "The features of M chosen points.",
      .semantics =
          "gathered[b, c, m] = features[b, c, idx[b, m]]. An index that is negative or not below N is an error. `idx` "
          "is i32 or "
          "i64. In PyTorch there are gradients by `features`.",
      .source = "`mmcv.ops.gather_points`; `features.gather(2, idx[:, None].expand(-1, C, -1))` in torch",
      .differences = "MMCV has no kernel for CPUs, takes i32 indices only and checks none.",
  };
};

}  // namespace polyop
