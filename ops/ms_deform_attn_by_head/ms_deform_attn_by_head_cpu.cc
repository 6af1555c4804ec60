#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/ms_deform_attn_by_head/ms_deform_attn_by_head_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/deform_attn/deform_attn-inl.h"
#include "families/points/type_pairs.h"
#include "kernels/cpu/simd.h"
#include "ops/ms_deform_attn_by_head/ms_deform_attn_by_head.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class Pair, class T = typename Pair::Real, class I = typename Pair::Int>
Status MsDeformAttnByHeadCpu(const MsDeformAttnByHead&, const Context& context, Tensor<const T, 4> value,
                             Tensor<const I, 2> shapes, Tensor<const I, 1> starts, Tensor<const T, 6> locations,
                             Tensor<const T, 5> weights, Tensor<T, 4> output) {
  return DeformAttnAtLocations(context, value, shapes, starts, locations, weights.data(), output.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(MsDeformAttnByHead, MsDeformAttnByHeadF32I64, MsDeformAttnByHeadCpu<F32I64>);
POLYOP_CPU_KERNEL(MsDeformAttnByHead, MsDeformAttnByHeadF32I32, MsDeformAttnByHeadCpu<F32I32>);
POLYOP_CPU_KERNEL(MsDeformAttnByHead, MsDeformAttnByHeadF16I64, MsDeformAttnByHeadCpu<F16I64>);
POLYOP_CPU_KERNEL(MsDeformAttnByHead, MsDeformAttnByHeadF16I32, MsDeformAttnByHeadCpu<F16I32>);
POLYOP_CPU_KERNEL(MsDeformAttnByHead, MsDeformAttnByHeadBF16I64, MsDeformAttnByHeadCpu<BF16I64>);
POLYOP_CPU_KERNEL(MsDeformAttnByHead, MsDeformAttnByHeadBF16I32, MsDeformAttnByHeadCpu<BF16I32>);
}  // namespace polyop
#endif
