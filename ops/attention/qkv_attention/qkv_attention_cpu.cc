// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/qkv_attention/qkv_attention_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/attention/attention-inl.h"
#include "ops/attention/qkv_attention/qkv_attention.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status QkvAttentionCpu(const QkvAttention&, const Context& context, Tensor<const T, 3> query, Tensor<const T, 3> key,
                       Tensor<const T, 3> value, Tensor<T, 3> output) {
  Attention<T> attention;
  attention.q = query;
  attention.k = key;
  attention.v = value;
  attention.out = output;
  return Attend(context, attention);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(QkvAttention, QkvAttentionCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
