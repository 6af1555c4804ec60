// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/points/gather_points/gather_points_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/type_pairs.h"
#include "ops/points/gather_points/gather_points_backward.h"
#include "ops/points/scatter_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class Types, class T = typename Types::Real>
Status GatherPointsBackwardCpu(const GatherPointsBackward&, const Context& context, Tensor<const T, 3> grad_output,
                               Tensor<const T, 3> features, Tensor<const typename Types::Int, 2> idx,
                               Tensor<T, 3> grad_features) {
  return GatherColumnsBackward(context, grad_output.data(), features, idx.data(), idx.dim(1), grad_features.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(GatherPointsBackward, GatherPointsBackwardCpu, F32I32, F32I64, F16I32, F16I64, BF16I32, BF16I64);
}  // namespace polyop
#endif
