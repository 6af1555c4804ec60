// SPDX-License-Identifier: Apache-2.0
// The conversion of grids with a plane per coordinate to points, on the CPU.
#pragma once

#include "core/context.h"
#include "core/dtype.h"
#include "ops/sampling/planar_grid_sampler/planar_grid_sampler.h"

namespace polyop {

/// Converts grid [N, axes, ...] to normalised points [N, ..., axes].
template <int kAxes, class T>
void PlanesToPoints(const Context& context, const Tensor<const T, kAxes + 2>& grid, float* points) {
  const int64_t count = PlanePixels(grid.shape());
  for (int64_t n = 0; n < grid.dim(0); ++n) {
    const T* const from = grid.data() + n * count * kAxes;
    float* const to = points + n * count * kAxes;
    context.ParallelFor(count, 1 << 13, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        for (int64_t a = 0; a < kAxes; ++a)
          to[p * kAxes + a] = ToFloat(from[a * count + p]) / PlanarGridSampler::kScale;
      }
    });
  }
}

/// Converts the gradients of normalised points to those of the grid.
template <int kAxes, class T>
void PlanesFromPoints(const Context& context, const float* points, const Tensor<T, kAxes + 2>& grid) {
  const int64_t count = PlanePixels(grid.shape());
  for (int64_t n = 0; n < grid.dim(0); ++n) {
    const float* const from = points + n * count * kAxes;
    T* const to = grid.data() + n * count * kAxes;
    context.ParallelFor(count, 1 << 13, [&](int64_t begin, int64_t end) {
      for (int64_t a = 0; a < kAxes; ++a) {
        for (int64_t p = begin; p < end; ++p) {
          to[a * count + p] = FromFloat<T>(from[p * kAxes + a] / PlanarGridSampler::kScale);
        }
      }
    });
  }
}

}  // namespace polyop
