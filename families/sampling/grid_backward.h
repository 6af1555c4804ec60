// The gradients of sampling images and volumes at a grid's points, on the CPU.
#pragma once

#include "core/context.h"
#include "core/status.h"
#include "core/tensor.h"
#include "families/sampling/grid_rule.h"

namespace polyop {

/// Computes the gradients of SampleGrid (grid_samples.h) with respect to input [N, C, ...] and points [N, ..., axes].
/// Either may be null. Sums are in float and rounded once; they do not depend on the number of threads. T: f32, f16,
/// bf16.
template <class T>
Status Sample2dBackward(const Context& context, const GridRule& rule, const Tensor<const T, 4>& grad_output,
                        const Tensor<const T, 4>& input, const float* points, T* grad_input, T* grad_points);
template <class T>
Status Sample3dBackward(const Context& context, const GridRule& rule, const Tensor<const T, 5>& grad_output,
                        const Tensor<const T, 5>& input, const float* points, T* grad_input, T* grad_points);

}  // namespace polyop
