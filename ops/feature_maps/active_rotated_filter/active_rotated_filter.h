// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Rotates a convolution's filters.
struct ActiveRotatedFilter {
  static constexpr const char* kName = "active_rotated_filter";
  static constexpr Signature kSignature =
      "input: T[O, P, A, H, W], indices: I[A, H, W, R] -> output: T[O*R, P*A, H, W]";
  static constexpr NodeName kNodes[] = {"polyop::ActiveRotatedFilter"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = R"(Rotates a convolution's filters: each filter of A orientations becomes R filters (Oriented Response
          Networks).)",
      .semantics = R"(Counts the A * H * W entries of a filter in memory order. For each rotation r, entry e of filter
          [o, p] is copied to position indices[e, r] - 1 of filter [o * R + r, p]; `indices` is 1-based. A position to
          which no entry is copied is 0. If several entries have the same position, the last one wins. An index that is
          not in [1, A * H * W] is an error. `indices` is i32 or i64. In PyTorch, differentiable with respect to
          `input`.)",
      .source = R"(Zhou et al., Oriented Response Networks, 2017; Han et al., Align Deep Features for Oriented Object
          Detection, 2020; `mmcv.ops.active_rotated_filter`)",
      .differences = R"(MMCV does not check `indices` and accepts i32 only. If several entries have the same position,
          MMCV's result depends on the order of its threads.)",
  };
};

}  // namespace polyop
