// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/feature_maps/corner_pool/corner_pool.h"

namespace polyop {

/// The gradient of corner pooling: a pixel gets the gradients of the pixels that it is the running maximum of. Of equal
/// pixels, the last one in the direction of the scan is the maximum, and the last NaN, as in torch.cummax.
struct CornerPoolBackward : GradientOf<CornerPool> {
  static constexpr const char* kName = "corner_pool_backward";
  static constexpr Signature kSignature =
      "grad_output: T[N, C, H, W], input: T[N, C, H, W] -> grad_input: T[N, C, H, W]";
};

}  // namespace polyop
