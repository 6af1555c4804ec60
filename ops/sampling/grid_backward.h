// SPDX-License-Identifier: Apache-2.0
// The gradients of sampling images and volumes at a grid's points, on the CPU.
#pragma once

#include "core/context.h"
#include "core/status.h"
#include "core/tensor.h"
#include "ops/sampling/grid_rule.h"

namespace polyop {

/// Computes the gradients of Sample2d (grid_samples.h) with respect to input [N, C, H, W] and points [N, rows, columns,
/// 2], in f32. Either may be null. Sums are in float and rounded once; they do not depend on the number of threads. T:
/// f32, f16, bf16.
template <class T>
Status Sample2dBackward(const Context& context, GridRule::Interpolation interpolation, const GridAxis* axes,
                        const Tensor<const T, 4>& grad_output, const Tensor<const T, 4>& input, const float* points,
                        T* grad_input, float* grad_points);
/// The gradients of Sample3d.
template <class T>
Status Sample3dBackward(const Context& context, GridRule::Interpolation interpolation, const GridAxis* axes,
                        const Tensor<const T, 5>& grad_output, const Tensor<const T, 5>& input, const float* points,
                        T* grad_input, float* grad_points);

/// The gradients of SampleGrid.
template <int kAxes, class T>
Status SampleGridBackward(const Context& context, const GridRule& rule, const Tensor<const T, kAxes + 2>& grad_output,
                          const Tensor<const T, kAxes + 2>& input, const float* points, T* grad_input,
                          float* grad_points) {
  GridAxis axes[kAxes];  // x, y, z
  for (int a = 0; a < kAxes; ++a) axes[a] = {rule.padding_mode, rule.align_corners, input.dim(kAxes + 1 - a)};
  constexpr auto backward = [] {
    if constexpr (kAxes == 2) {
      return Sample2dBackward<T>;
    } else {
      return Sample3dBackward<T>;
    }
  }();
  return backward(context, rule.interpolation_mode, axes, grad_output, input, points, grad_input, grad_points);
}

}  // namespace polyop
