// SPDX-License-Identifier: Apache-2.0
// Deformable convolution on the CPU: tiles of output pixels are sampled into columns, and each tile is multiplied
// with the packed weights while it is in the cache. There is no full column buffer.
// Dai et al., Deformable Convolutional Networks, 2017; Zhu et al., Deformable ConvNets v2, 2019.
#pragma once

#include "core/context.h"
#include "core/status.h"
#include "core/tensor.h"
#include "kernels/cpu/quantized.h"
#include "ops/deform/deform_conv_rule.h"

namespace polyop {

/// `mask` is null for version 1; `bias` may be null. Requires: shapes are checked. Padding is that at the top and on
/// the left; the output's shape implies the rest. T is f32, f16 or bf16.
template <class T>
Status DeformConv(const Context& context, const DeformConvRule& rule, const Tensor<const T, 4>& input, const T* offset,
                  const T* mask, const Tensor<const T, 4>& weight, const T* bias, const Tensor<T, 4>& output);

/// Like above for quantized images and results, and weights of which filter o is a multiple of weight_scale[o]. `bias`
/// is in units of the input's scale.
Status DeformConvOfCodes(const Context& context, const DeformConvRule& rule, const Tensor<const Q8, 4>& input,
                         const float* offset, const float* mask, const Tensor<const int8_t, 4>& weight,
                         const float* weight_scale, const float* bias, const Requantize<Q8>& codes,
                         const Tensor<Q8, 4>& output);

}  // namespace polyop
