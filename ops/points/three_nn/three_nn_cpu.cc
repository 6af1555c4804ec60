// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/points/three_nn/three_nn_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/points/cloud_batches-inl.h"
#include "ops/points/nearest_of_queries-inl.h"
#include "ops/points/three_nn/three_nn.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status ThreeNNCpu(const ThreeNN&, const Context& context, Tensor<const T, 3> target, Tensor<const T, 3> source,
                  Tensor<T, 3> dist, Tensor<int32_t, 3> idx) {
  const CloudBatches<T> batches(context, source, target);
  QueriesOfPoints call;
  POLYOP_RETURN_IF_ERROR(batches.Read(&call));
  return ForNearest(context, call, 3, [&](int64_t q, int64_t batch, const Neighbour* nearest, int64_t found) {
    for (int64_t k = 0; k < 3; ++k) {
      const bool has = k < found;
      dist[3 * q + k] = FromFloat<T>(has ? static_cast<float>(std::sqrt(nearest[k].squared)) : INFINITY);
      idx[3 * q + k] = has ? static_cast<int32_t>(nearest[k].index - batch * source.dim(1)) : 0;
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(ThreeNN, ThreeNNCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
