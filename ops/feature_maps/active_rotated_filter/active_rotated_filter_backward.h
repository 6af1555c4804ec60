// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/feature_maps/active_rotated_filter/active_rotated_filter.h"

namespace polyop {

/// The gradient with respect to the filters: each entry gets the sum of the gradients of its copies.
struct ActiveRotatedFilterBackward : GradientOf<ActiveRotatedFilter> {
  static constexpr const char* kName = "active_rotated_filter_backward";
  static constexpr Signature kSignature =
      "grad_output: T[O*R, P*A, H, W], input: T[O, P, A, H, W], indices: I[A, H, W, R] -> "
      "grad_input: T[O, P, A, H, W]";
};

}  // namespace polyop
