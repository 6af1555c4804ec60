// SPDX-License-Identifier: Apache-2.0
// Separable bicubic resizing on the CPU.
#pragma once

#include "core/context.h"
#include "core/status.h"
#include "core/tensor.h"
#include "kernels/cpu/quantized.h"
#include "ops/resize/cubic.h"

namespace polyop {

/// Resizes every plane of input [N, C, H, W] to output [N, C, OH, OW]. T is f32, f16 or bf16.
template <class T>
Status BicubicResize(const Context& context, Tensor<const T, 4> input, const ResizeAxis& rows,
                     const ResizeAxis& columns, Tensor<T, 4> output);
/// Like BicubicResize for quantized images and results.
Status QuantizedBicubicResize(const Context& context, Tensor<const Q8, 4> input, const ResizeAxis& rows,
                              const ResizeAxis& columns, const Requantize<Q8>& codes, Tensor<Q8, 4> output);

}  // namespace polyop
