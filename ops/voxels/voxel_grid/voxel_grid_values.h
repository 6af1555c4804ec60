// SPDX-License-Identifier: Apache-2.0
// Checks of the grid, shared by the CPU kernel and the reference.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/status.h"

namespace polyop {

/// The result for a point without a voxel.
inline constexpr int64_t kNoVoxel = std::numeric_limits<int64_t>::min();

/// One dimension of the grid.
struct VoxelAxis {
  float start, size;
  int64_t voxels, stride;
};

/// Computes the voxels and strides of the axes, or returns an error. Requires: start and size are set.
inline Status CountVoxels(VoxelAxis* axes, const float* ends, int64_t dims) {
  int64_t stride = 1;
  for (int64_t d = 0; d < dims; ++d) {
    VoxelAxis& a = axes[d];
    if (!(a.size > 0) || !std::isfinite(a.size)) {
      return InvalidArgument("'size'[", d, "]: expected a positive finite number, got ", a.size);
    }
    if (!std::isfinite(a.start)) return InvalidArgument("'start'[", d, "]: expected a finite number, got ", a.start);
    if (!std::isfinite(ends[d])) return InvalidArgument("'end'[", d, "]: expected a finite number, got ", ends[d]);
    if (ends[d] < a.start) {
      return InvalidArgument("'end'[", d, "]: expected at least start = ", a.start, ", got ", ends[d]);
    }
    const float quotient = (ends[d] - a.start) / a.size;
    a.stride = stride;
    a.voxels = quotient < 0x1p63f ? static_cast<int64_t>(quotient) : kNoVoxel;
    if (a.voxels == kNoVoxel || __builtin_add_overflow(a.voxels, int64_t{1}, &a.voxels) ||
        __builtin_mul_overflow(stride, a.voxels, &stride)) {
      return InvalidArgument("'size'[", d, "]: expected a number of voxels from ", a.start, " to ", ends[d],
                             " that fits in 64 bits, got size ", a.size);
    }
  }
  return Status::Ok();
}

}  // namespace polyop
