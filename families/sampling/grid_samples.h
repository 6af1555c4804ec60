// Samples of pictures and volumes at points, on the CPU. T: f32, f16, bf16.
#pragma once

#include "core/context.h"
#include "core/status.h"
#include "core/tensor.h"
#include "families/sampling/grid_rule.h"

namespace polyop {

/// output[N, C, H, W] = input[N, C, ...] at points[N, H, W], whose coordinates are x and y; an axis for each of them.
template <class T>
Status Sample2d(const Context& context, GridRule::Interpolation interpolation, const GridAxis* axes,
                const Tensor<const T, 4>& input, const float* points, const Tensor<T, 4>& output);
/// The same for volumes and x, y and z. Bicubic is bilinear.
template <class T>
Status Sample3d(const Context& context, GridRule::Interpolation interpolation, const GridAxis* axes,
                const Tensor<const T, 5>& input, const float* points, const Tensor<T, 5>& output);

/// Either, for points that are -1 to 1 over a picture.
template <int kAxes, class T>
Status SampleGrid(const Context& context, const GridRule& rule, const Tensor<const T, kAxes + 2>& input,
                  const float* points, const Tensor<T, kAxes + 2>& output) {
  GridAxis axes[kAxes];  // x, y, z
  for (int a = 0; a < kAxes; ++a) axes[a] = {rule.padding_mode, rule.align_corners, input.dim(kAxes + 1 - a)};
  constexpr auto sample = [] {
    if constexpr (kAxes == 2)
      return Sample2d<T>;
    else
      return Sample3d<T>;
  }();
  return sample(context, rule.interpolation_mode, axes, input, points, output);
}

/// Coordinates as floats.
template <class T>
void WidenPoints(const Context& context, const T* from, int64_t count, float* to);

}  // namespace polyop
