// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/points/furthest_point_sampling_with_dist/furthest_point_sampling_with_dist_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/points/farthest-inl.h"
#include "ops/points/furthest_point_sampling_with_dist/furthest_point_sampling_with_dist.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Lowers the running distances to `row`, the distances from the last chosen point, and returns the farthest point.
template <class T>
int32_t Next(const T* row, int64_t points, float* running) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  FarthestOfLanes farthest(d);
  for (int64_t i = 0; i < points; i += lanes) {
    const size_t left = static_cast<size_t>(std::min(lanes, points - i));
    const auto distance = left == static_cast<size_t>(lanes) ? LoadFloat(d, row + i) : LoadFloatN(d, row + i, left);
    const auto before = hn::LoadU(d, running + i);
    const auto nearest = hn::IfThenElse(hn::Lt(distance, before), distance, before);
    hn::StoreU(nearest, d, running + i);
    const auto is_point = hn::FirstN(d, left);
    const auto index = hn::IfThenElse(hn::RebindMask(di, is_point), hn::Iota(di, static_cast<int32_t>(i)),
                                      hn::Set(di, std::numeric_limits<int32_t>::max()));
    farthest.Offer(hn::IfThenElse(is_point, nearest, hn::Set(d, kNoPoint)), index);
  }
  return farthest.Result().index;
}

template <class T>
Status FurthestPointSamplingWithDistCpu(const FurthestPointSamplingWithDist&, const Context& context,
                                        Tensor<const T, 3> dist, Tensor<int32_t, 2> idx) {
  const int64_t points = dist.dim(1), chosen = idx.dim(1), size = (points + 63) / 64 * 64;
  const int64_t grain = GrainFor(0.3 * static_cast<double>(points) * static_cast<double>(chosen));
  const auto sample = [&](float* running, int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t c = begin; c < end; ++c) {
      std::fill(running, running + size, INFINITY);
      int32_t last = 0;
      for (int64_t k = 0; k < chosen; ++k) {
        if (k > 0) last = Next(dist.data() + (c * points + last) * points, points, running);
        idx[c * chosen + k] = last;
      }
    }
  };
  if (context.ParallelForWithScratch<float>(dist.dim(0), grain, size, sample)) return Status::Ok();
  return Internal("out of memory: ", points, " points");
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(FurthestPointSamplingWithDist, FurthestPointSamplingWithDistCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
