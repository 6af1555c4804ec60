// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/feature_maps/psa_mask/psa_mask.h"

namespace polyop {

/// The gradient of PsaMask: an element of a mask that refers to a pixel of the image takes that pixel's gradient, and
/// any other 0.
struct PsaMaskBackward : GradientOf<PsaMask> {
  static constexpr const char* kName = "psa_mask_backward";
  static constexpr Signature kSignature =
      "grad_output: T[N, H*W, H, W], input: T[N, mask_size[0]*mask_size[1], H, W] -> "
      "grad_input: T[N, mask_size[0]*mask_size[1], H, W]";
};

}  // namespace polyop
