// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_cuda.h"
#include "ops/attention/scaled_dot_product_attention/scaled_dot_product_attention.h"

namespace polyop {
namespace {

template <class T>
Status AttentionCuda(const ScaledDotProductAttention&, const CudaContext& cuda, Tensor<const T, 3> q,
                     Tensor<const T, 3> k, Tensor<const T, 3> v, std::optional<Tensor<const T, kAnyRank>> mask,
                     Tensor<T, 3> out, Tensor<T, 3> weights) {
  const MaskStrides strides = mask ? MaskStrides::Of(mask->shape()) : MaskStrides{};
  return AttendCuda(cuda, q, k, v, mask ? mask->data() : nullptr, strides, out, weights.data());
}

POLYOP_CUDA_KERNELS(ScaledDotProductAttention, AttentionCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
