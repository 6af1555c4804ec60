// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/sampling/rotate/rotate.h"

namespace polyop {

/// The gradients of a rotation with respect to the image, the angle and the center. In mode nearest, the angle and the
/// center have none; neither have they one if any of them is NaN or infinite.
struct RotateBackward : GradientOf<Rotate> {
  static constexpr const char* kName = "rotate_backward";
  static constexpr Signature kSignature =
      "grad_output: T[C, H, W], img: T[C, H, W], angle: U[], center: U[2] -> grad_img?: T[C, H, W], grad_angle?: U[], "
      "grad_center?: U[2]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return Rotate::CheckInputs(inputs.subspan(1)); }
};

}  // namespace polyop
