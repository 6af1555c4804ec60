// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/points/ball_query/ball_query_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/points/ball_query/ball_query.h"
#include "ops/points/ball_search-inl.h"
#include "ops/points/cloud_batches-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status BallQueryCpu(const BallQuery& op, const Context& context, Tensor<const T, 3> xyz, Tensor<const T, 3> centres,
                    Tensor<int32_t, 3> idx) {
  const CloudBatches<T> batches(context, xyz, centres);
  QueriesOfPoints call;
  POLYOP_RETURN_IF_ERROR(batches.Read(&call));
  return RepeatingFirst(context, call, op.Rule(), op.sample_num, 0, idx.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(BallQuery, BallQueryCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
