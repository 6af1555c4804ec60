// Deformable convolution on the CPU: tiles of output pixels are sampled into columns, and each tile is multiplied
// with the packed weights while it is in the cache. No full column buffer is ever made.
// Dai et al., Deformable Convolutional Networks, 2017; Zhu et al., Deformable ConvNets v2, 2019.
#pragma once

#include "core/context.h"
#include "core/status.h"
#include "core/tensor.h"
#include "families/deform_conv/deform_conv_rule.h"

namespace polyop {

/// `mask` is null for version 1, `bias` may be null. The signature has checked all shapes; padding is that before the
/// picture, for the output's shape says how far it goes. T: f32, f16, bf16.
template <class T>
Status DeformConv(const Context& context, const DeformConvRule& rule, const Tensor<const T, 4>& input, const T* offset,
                  const T* mask, const Tensor<const T, 4>& weight, const T* bias, const Tensor<T, 4>& output);

}  // namespace polyop
