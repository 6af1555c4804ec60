// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/resize/bicubic_interpolate/bicubic_interpolate.h"

namespace polyop {

/// The gradient with respect to the images. An output pixel passes its gradient on to the pixels that have a weight
/// other than 0 in it.
struct BicubicInterpolateBackward : GradientOf<BicubicInterpolate> {
  static constexpr const char* kName = "bicubic_interpolate_backward";
  static constexpr Signature kSignature =
      "grad_output: T[N, C, floor(H*scale_factor[0]), floor(W*scale_factor[1])], input: T[N, C, H, W] -> "
      "grad_input: T[N, C, H, W]";
};

}  // namespace polyop
