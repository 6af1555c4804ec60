// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/rois/prroi_pool/prroi_pool.h"

namespace polyop {

/// The gradient of PrRoiPool with respect to the features and the boxes. A bin is an integral over a box, so the
/// derivative with respect to an edge is an integral along it. The gradient of a batch index is 0.
struct PrRoiPoolBackward : GradientOf<PrRoiPool> {
  static constexpr const char* kName = "prroi_pool_backward";
  static constexpr Signature kSignature =
      "grad_output: T[R, C, (pooled_height), (pooled_width)], features: T[N, C, H, W], rois: T[R, 5], "
      "output: T[R, C, (pooled_height), (pooled_width)] -> grad_features?: T[N, C, H, W], grad_rois?: T[R, 5]";
};

}  // namespace polyop
