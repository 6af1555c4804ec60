// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/resize/dynamic_resize/dynamic_resize.h"

namespace polyop {

/// The gradient with respect to the images. An output pixel passes its gradient on to the pixels that have a weight
/// other than 0 in it.
struct DynamicResizeBackward : GradientOf<DynamicResize> {
  static constexpr const char* kName = "dynamic_resize_backward";
  static constexpr Signature kSignature =
      "grad_output: T[N, C, floor(H*scales[2]), floor(W*scales[3])], input: T[N, C, H, W], scales: f32[4] -> "
      "grad_input: T[N, C, H, W]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return DynamicResize::CheckInputs(inputs.subspan(1)); }
};

}  // namespace polyop
