// SPDX-License-Identifier: Apache-2.0
// The points of a grid with a plane per coordinate, for CUDA kernels.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/host_device.h"
#include "ops/sampling/planar_grid_sampler/planar_grid_sampler.h"

namespace polyop {

/// The points of a grid [N, axes, ...].
template <class T, int kAxes>
struct PlanarPoints {
  static constexpr bool kInPixels = false;
  const T* grid;
  int64_t points;  // per image

  POLYOP_HD void At(int64_t image, int64_t point, float at[kAxes]) const {
    for (int a = 0; a < kAxes; ++a) {
      at[a] = ToFloat(grid[(image * kAxes + a) * points + point]) / PlanarGridSampler::kScale;
    }
  }
};

}  // namespace polyop
