// SPDX-License-Identifier: Apache-2.0
// The gradient of separable bicubic resizing on the CPU.
#pragma once

#include "core/context.h"
#include "core/status.h"
#include "core/tensor.h"
#include "ops/resize/cubic.h"

namespace polyop {

/// Computes grad_input [N, C, H, W] from grad_output [N, C, OH, OW], plane by plane; an axis without outputs gives
/// zeros. T is f32, f16 or bf16. Sums are in float and rounded once; they do not depend on the number of threads. NaN
/// and infinities pass on to the pixels that have a weight other than 0 in the output pixel, and to no others.
template <class T>
Status BicubicResizeBackward(const Context& context, Tensor<const T, 4> grad_output, const ResizeAxis& rows,
                             const ResizeAxis& columns, Tensor<T, 4> grad_input);

}  // namespace polyop
