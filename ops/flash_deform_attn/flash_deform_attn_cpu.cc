#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/flash_deform_attn/flash_deform_attn_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/deform_attn/deform_attn-inl.h"
#include "families/points/type_pairs.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/softmax-inl.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/flash_deform_attn/flash_deform_attn.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class Pair, class T = typename Pair::Real, class I = typename Pair::Int>
Status FlashDeformAttnCpu(const FlashDeformAttn& op, const Context& context, Tensor<const T, 4> value,
                          Tensor<const I, 2> shapes, Tensor<const I, 1> starts, Tensor<const T, 4> loc_attn,
                          Tensor<T, 3> output) {
  const int64_t samples = starts.dim(0) * op.points;
  const Scratch<AttnLevel> levels = context.Allocate<AttnLevel>(starts.dim(0));
  if (!levels) return Internal("out of memory: ", starts.dim(0), " levels");
  POLYOP_RETURN_IF_ERROR(ReadLevels(shapes, starts, value.dim(1), levels.data()));
  const auto find = [&](int64_t pair, float* weights, AttnTaps<T>& taps) HWY_ATTR {
    const T* const location = loc_attn.data() + pair * samples * 3;
    WidenRow(location + 2 * samples, samples, weights);
    Softmax(weights, samples);
    for (int64_t s = 0; s < samples; ++s) taps.AddAtLocation(levels[s / op.points], location + 2 * s, weights[s]);
  };
  return DeformAttn<T>(context, value, loc_attn.dim(1), samples, find, output.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(FlashDeformAttn, FlashDeformAttnF32I32, FlashDeformAttnCpu<F32I32>);
POLYOP_CPU_KERNEL(FlashDeformAttn, FlashDeformAttnF32I64, FlashDeformAttnCpu<F32I64>);
POLYOP_CPU_KERNEL(FlashDeformAttn, FlashDeformAttnF16I32, FlashDeformAttnCpu<F16I32>);
POLYOP_CPU_KERNEL(FlashDeformAttn, FlashDeformAttnF16I64, FlashDeformAttnCpu<F16I64>);
POLYOP_CPU_KERNEL(FlashDeformAttn, FlashDeformAttnBF16I32, FlashDeformAttnCpu<BF16I32>);
POLYOP_CPU_KERNEL(FlashDeformAttn, FlashDeformAttnBF16I64, FlashDeformAttnCpu<BF16I64>);
}  // namespace polyop
#endif
