// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/points/three_interpolate/three_interpolate.h"

namespace polyop {

/// The gradients of interpolation with respect to features and weights. MMCV has none with respect to weights.
struct ThreeInterpolateBackward : GradientOf<ThreeInterpolate> {
  static constexpr const char* kName = "three_interpolate_backward";
  static constexpr Signature kSignature =
      "grad_interpolated: T[B, C, N], features: T[B, C, M], idx: I[B, N, 3], weight: T[B, N, 3] -> "
      "grad_features?: T[B, C, M], grad_weight?: T[B, N, 3]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    return ThreeInterpolate::CheckInputs(inputs.subspan(1));
  }
};

}  // namespace polyop
