// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/feature_maps/carafe/carafe.h"

namespace polyop {

/// The gradients of CARAFE with respect to features and masks. A mask of a position outside of the image has none.
struct CarafeBackward : GradientOf<Carafe> {
  static constexpr const char* kName = "carafe_backward";
  static constexpr Signature kSignature =
      "grad_output: T[N, C, floor(H*scale_factor), floor(W*scale_factor)], features: T[N, C, H, W], "
      "masks: T[N, kernel_size*kernel_size*group_size, floor(H*scale_factor), floor(W*scale_factor)] -> "
      "grad_features?: T[N, C, H, W], "
      "grad_masks?: T[N, kernel_size*kernel_size*group_size, floor(H*scale_factor), floor(W*scale_factor)]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return Carafe::CheckInputs(inputs.subspan(1)); }
};

}  // namespace polyop
