// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/bev/quick_cumsum/quick_cumsum.h"

namespace polyop {

/// The gradient with respect to the features of the points. A point receives the gradients of the cells of its
/// intervals; an interval that another one overwrites has none.
struct QuickCumsumBackward : GradientOf<QuickCumsum> {
  static constexpr const char* kName = "quick_cumsum_backward";
  static constexpr Signature kSignature =
      "grad_bev: T[(batch_size), (dimension), (height), (width), C], x: T[P, C], geom_feats: I[P, 4], "
      "interval_lengths: I[S], interval_starts: I[S] -> grad_x: T[P, C]";
};

}  // namespace polyop
