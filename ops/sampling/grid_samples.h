// SPDX-License-Identifier: Apache-2.0
// Samples images and volumes at points on the CPU. T is f32, f16 or bf16.
#pragma once

#include "core/context.h"
#include "core/status.h"
#include "core/tensor.h"
#include "kernels/cpu/quantized.h"
#include "ops/sampling/grid_rule.h"

namespace polyop {

/// Samples input [N, C, ...] at points [N, H, W], which are (x, y), to output [N, C, H, W]. `axes` are those of x and
/// y.
template <class T>
Status Sample2d(const Context& context, GridRule::Interpolation interpolation, const GridAxis* axes,
                const Tensor<const T, 4>& input, const float* points, const Tensor<T, 4>& output);
/// Samples volumes at points (x, y, z). Bicubic falls back to bilinear.
template <class T>
Status Sample3d(const Context& context, GridRule::Interpolation interpolation, const GridAxis* axes,
                const Tensor<const T, 5>& input, const float* points, const Tensor<T, 5>& output);

/// Like above for quantized images and results.
Status SampleQuantized2d(const Context& context, GridRule::Interpolation interpolation, const GridAxis* axes,
                         const Tensor<const Q8, 4>& input, const float* points, const Requantize<Q8>& codes,
                         const Tensor<Q8, 4>& output);
Status SampleQuantized3d(const Context& context, GridRule::Interpolation interpolation, const GridAxis* axes,
                         const Tensor<const Q8, 5>& input, const float* points, const Requantize<Q8>& codes,
                         const Tensor<Q8, 5>& output);

/// Fills the axes x, y (and z) of normalised points: -1 to 1 across an image.
template <int kAxes>
void FillGridAxes(const GridRule& rule, const Shape& input, GridAxis* axes) {
  for (int a = 0; a < kAxes; ++a) axes[a] = {rule.padding_mode, rule.align_corners, input[kAxes + 1 - a]};
}

/// Samples images or volumes at normalised points.
template <int kAxes, class T>
Status SampleGrid(const Context& context, const GridRule& rule, const Tensor<const T, kAxes + 2>& input,
                  const float* points, const Tensor<T, kAxes + 2>& output) {
  GridAxis axes[kAxes];
  FillGridAxes<kAxes>(rule, input.shape(), axes);
  constexpr auto sample = [] {
    if constexpr (kAxes == 2)
      return Sample2d<T>;
    else
      return Sample3d<T>;
  }();
  return sample(context, rule.interpolation_mode, axes, input, points, output);
}

/// Converts coordinates to float.
template <class T>
void WidenPoints(const Context& context, const T* from, int64_t count, float* to);
/// Rounds coordinates to T.
template <class T>
void NarrowPoints(const Context& context, const float* from, int64_t count, T* to);

}  // namespace polyop
