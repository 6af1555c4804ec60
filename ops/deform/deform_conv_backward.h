// SPDX-License-Identifier: Apache-2.0
// The gradients of deformable convolution on the CPU: tiles of output pixels are multiplied with the weights, and the
// products, which are gradients of samples, are spread over pixels, offsets and masks while they are in the cache.
// There is no full column buffer.
#pragma once

#include "core/context.h"
#include "core/status.h"
#include "core/tensor.h"
#include "ops/deform/deform_conv_rule.h"

namespace polyop {

/// Where the gradients are written; null for those that are not needed.
template <class T>
struct DeformConvGradients {
  T *input, *offset, *mask, *weight, *bias;
};

/// `mask` is null for version 1. Requires: shapes are checked. Results do not depend on the number of threads. Sums are
/// in float and rounded once. T is f32, f16 or bf16.
template <class T>
Status DeformConvBackward(const Context& context, const DeformConvRule& rule, const Tensor<const T, 4>& grad_output,
                          const Tensor<const T, 4>& input, const T* offset, const T* mask,
                          const Tensor<const T, 4>& weight, const DeformConvGradients<T>& gradients);

}  // namespace polyop
