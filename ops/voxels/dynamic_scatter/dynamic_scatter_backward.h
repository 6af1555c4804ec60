// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/voxels/dynamic_scatter/dynamic_scatter.h"

namespace polyop {

/// The gradient with respect to the features of the points.
struct DynamicScatterBackward : GradientOf<DynamicScatter> {
  static constexpr const char* kName = "dynamic_scatter_backward";
  static constexpr Signature kSignature =
      "grad_voxel_feats: T[M, C], feats: T[N, C], coors: I[N, D], voxel_feats: T[M, C], point2voxel: i32[N] -> "
      "grad_feats: T[N, C]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return DynamicScatter::CheckInputs(inputs.subspan(1)); }
};

}  // namespace polyop
