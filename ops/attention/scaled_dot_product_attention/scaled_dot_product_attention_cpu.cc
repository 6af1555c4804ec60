// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/scaled_dot_product_attention/scaled_dot_product_attention_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/attention/attention-inl.h"
#include "ops/attention/mask_strides.h"
#include "ops/attention/scaled_dot_product_attention/scaled_dot_product_attention.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void SetMask(const Tensor<const T, kAnyRank>& mask, Attention<T>& attention) {
  const MaskStrides strides = MaskStrides::Of(mask.shape());
  attention.mask_batch = strides.batch;
  attention.mask_row = strides.row;
  attention.mask_column = strides.column;
  attention.mask = mask.data();
}

template <class T>
Status AttentionCpu(const ScaledDotProductAttention&, const Context& context, Tensor<const T, 3> q,
                    Tensor<const T, 3> k, Tensor<const T, 3> v, std::optional<Tensor<const T, kAnyRank>> mask,
                    Tensor<T, 3> out, Tensor<T, 3> weights) {
  Attention<T> attention;
  attention.q = q;
  attention.k = k;
  attention.v = v;
  attention.out = out;
  attention.weights = weights.data();
  if (mask) SetMask(*mask, attention);
  return Attend(context, attention);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(ScaledDotProductAttention, AttentionCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
