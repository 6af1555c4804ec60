// SPDX-License-Identifier: Apache-2.0
// A check of the voxels of points, shared by the CPU kernel and the reference of the gradient.
#pragma once

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// Checks that every element is a voxel in [0, voxels) or -1.
inline Status CheckPointVoxels(const Tensor<const int32_t, 1>& point2voxel, int64_t voxels) {
  for (int64_t i = 0; i < point2voxel.dim(0); ++i) {
    if (point2voxel[i] >= -1 && point2voxel[i] < voxels) continue;
    return InvalidArgument("'point2voxel'[", i, "]: expected a row of 'voxel_feats' in [0, ", voxels, ") or -1, got ",
                           point2voxel[i]);
  }
  return Status::Ok();
}

}  // namespace polyop
