// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/bev/bev_pool/bev_pool.h"

namespace polyop {

/// The gradients with respect to depths and features. A rank receives the gradient of the cell that its interval is
/// summed into; an interval that another one overwrites has none.
struct BevPoolBackward : GradientOf<BevPool> {
  static constexpr const char* kName = "bev_pool_backward";
  static constexpr Signature kSignature =
      "grad_bev: T[1, (out_height), (out_width), C], depth: T[N, D, H, W], feat: T[N, H, W, C], ranks_depth: I[R], "
      "ranks_feat: I[R], ranks_bev: I[R], interval_starts: I[S], interval_lengths: I[S] -> "
      "grad_depth?: T[N, D, H, W], grad_feat?: T[N, H, W, C]";
};

}  // namespace polyop
