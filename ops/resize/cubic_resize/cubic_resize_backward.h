// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/resize/cubic_resize/cubic_resize.h"

namespace polyop {

/// The gradient with respect to the images. An output pixel passes its gradient on to the pixels that have a weight
/// other than 0 in it.
struct CubicResizeBackward : GradientOf<CubicResize> {
  static constexpr const char* kName = "cubic_resize_backward";
  static constexpr Signature kSignature =
      "grad_output: T[N, C, sizes[0], sizes[1]], input: T[N, C, H, W], sizes: i64[2] -> grad_input: T[N, C, H, W]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CubicResize::CheckInputs(inputs.subspan(1)); }
};

}  // namespace polyop
