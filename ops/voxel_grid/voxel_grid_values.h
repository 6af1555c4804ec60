// What the grid's values must satisfy: the CPU's kernel and the reference refuse the same.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/status.h"

namespace polyop {

/// The voxel of a point that has none.
inline constexpr int64_t kNoVoxel = std::numeric_limits<int64_t>::min();

/// One dimension of the grid.
struct VoxelAxis {
  float start, size;
  int64_t voxels, stride;
};

/// Voxels and strides of the axes, whose start and size are set, or what is wrong.
inline Status CountVoxels(VoxelAxis* axes, const float* ends, int64_t dims) {
  int64_t stride = 1;
  for (int64_t d = 0; d < dims; ++d) {
    VoxelAxis& a = axes[d];
    if (!(a.size > 0) || !std::isfinite(a.size)) {
      return InvalidArgument("'size'[", d, "] is ", a.size, ", wanted a positive number");
    }
    if (!std::isfinite(a.start)) return InvalidArgument("'start'[", d, "] is ", a.start, ", wanted a finite number");
    if (!std::isfinite(ends[d])) return InvalidArgument("'end'[", d, "] is ", ends[d], ", wanted a finite number");
    if (ends[d] < a.start) {
      return InvalidArgument("'end'[", d, "] is ", ends[d], ", wanted at least start = ", a.start);
    }
    const float quotient = (ends[d] - a.start) / a.size;
    a.stride = stride;
    a.voxels = quotient < 0x1p63f ? static_cast<int64_t>(quotient) : kNoVoxel;
    if (a.voxels == kNoVoxel || __builtin_add_overflow(a.voxels, int64_t{1}, &a.voxels) ||
        __builtin_mul_overflow(stride, a.voxels, &stride)) {
      return InvalidArgument("'size'[", d, "] is ", a.size, ": from ", a.start, " to ", ends[d],
                             " the number of voxels does not fit in 64 bits");
    }
  }
  return Status::Ok();
}

}  // namespace polyop
