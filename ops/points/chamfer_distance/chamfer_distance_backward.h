// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/points/chamfer_distance/chamfer_distance.h"

namespace polyop {

/// The gradients of the distances with respect to the points. A distance that is infinite because a point has no
/// neighbour has none.
struct ChamferDistanceBackward : GradientOf<ChamferDistance> {
  static constexpr const char* kName = "chamfer_distance_backward";
  static constexpr Signature kSignature =
      "grad_dist1: T[B, N], grad_dist2: T[B, M], xyz1: T[B, N, D], xyz2: T[B, M, D], idx1: i32[B, N], "
      "idx2: i32[B, M] -> grad_xyz1?: T[B, N, D], grad_xyz2?: T[B, M, D]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    return ChamferDistance::CheckInputs(inputs.subspan(2));
  }
};

}  // namespace polyop
