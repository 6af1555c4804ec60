#pragma once

#include "core/operator.h"

namespace polyop {

/// A convolution's filters in several rotations.
struct ActiveRotatedFilter {
  static constexpr const char* kName = "active_rotated_filter";
  static constexpr Signature kSignature =
      "input: T[O, P, A, H, W], indices: I[A, H, W, R] -> output: T[O*R, P*A, H, W]";
  static constexpr NodeName kNodes[] = {"polyop::ActiveRotatedFilter"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary =
          "Makes a convolution's filters for R rotations of one for A orientations (Oriented Response Networks).",
      .semantics =
          "With a filter's A * H * W entries counted in their order, entry e of filter [o, p] is copied, for each "
          "rotation r, to place indices[e, r] - 1 of filter [o * R + r, p]: places count from 1. A place that no entry "
          "is copied to is 0; of several entries the last one stays. A place that is not in [1, A * H * W] is an "
          "error. "
          "`indices` is i32 or i64. In PyTorch there are gradients by `input`.",
      .source =
          "Zhou et al., Oriented Response Networks, 2017; Han et al., Align Deep Features for Oriented Object "
          "Detection, 2020; `mmcv.ops.active_rotated_filter`",
      .differences = "MMCV checks no place, takes i32 alone, and the order of its threads decides between entries.",
  };
};

}  // namespace polyop
