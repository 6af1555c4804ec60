// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_cuda.h"
#include "ops/attention/qkv_attention/qkv_attention.h"

namespace polyop {
namespace {

template <class T>
Status QkvAttentionCuda(const QkvAttention&, const CudaContext& cuda, Tensor<const T, 3> query, Tensor<const T, 3> key,
                        Tensor<const T, 3> value, Tensor<T, 3> output) {
  return AttendCuda<T>(cuda, query, key, value, nullptr, {}, output, nullptr);
}

POLYOP_CUDA_KERNELS(QkvAttention, QkvAttentionCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
