// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/points/furthest_point_sampling/furthest_point_sampling_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/points/farthest-inl.h"
#include "ops/points/furthest_point_sampling/furthest_point_sampling.h"
#include "ops/points/segments.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// A cloud that is scanned as a whole for each choice: one column per coordinate, and the running distances.
struct Columns {
  float *x, *y, *z, *running;

  static constexpr int64_t kAlignment = 64;  // maximum number of lanes
  static int64_t Size(int64_t points) { return (points + kAlignment - 1) / kAlignment * kAlignment; }

  void Fill(const float* xyz, int64_t points) const {
    for (int64_t i = 0; i < points; ++i) {
      const float* p = xyz + 3 * i;
      const bool finite = std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]);
      x[i] = p[0];
      y[i] = p[1];
      z[i] = p[2];
      running[i] = finite ? INFINITY : kNoPoint;
    }
    for (int64_t i = points; i < Size(points); ++i) {
      x[i] = y[i] = z[i] = 0;
      running[i] = kNoPoint;
    }
  }

  int32_t Next(int64_t points, const float* from) const {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> di;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto qx = hn::Set(d, from[0]), qy = hn::Set(d, from[1]), qz = hn::Set(d, from[2]);
    auto max_distance = hn::Set(d, kNoPoint);
    auto max_index = hn::Iota(di, 0), index = max_index;
    for (int64_t i = 0; i < points; i += lanes) {
      const auto squared = SumOfSquares(d, hn::Sub(hn::Load(d, x + i), qx), hn::Sub(hn::Load(d, y + i), qy),
                                        hn::Sub(hn::Load(d, z + i), qz));
      const auto before = hn::Load(d, running + i);
      const auto distance = hn::IfThenElse(hn::Lt(squared, before), squared, before);
      hn::Store(distance, d, running + i);
      const auto farther = hn::Gt(distance, max_distance);  // a lane keeps the first of equal distances
      max_distance = hn::IfThenElse(farther, distance, max_distance);
      max_index = hn::IfThenElse(hn::RebindMask(di, farther), index, max_index);
      index = hn::Add(index, hn::Set(di, static_cast<int32_t>(lanes)));
    }
    FarthestOfLanes farthest(d);
    farthest.Offer(max_distance, max_index);
    return farthest.Result().index;
  }
};

// Returns true if building a k-d tree pays off.
bool ShouldBuildTree(int64_t points, int64_t chosen) { return points >= 2048 && chosen >= 64; }

Status SampleColumns(const Context& context, const float* xyz, int64_t clouds, int64_t points, int64_t chosen,
                     int32_t* idx) {
  const int64_t size = Columns::Size(points);
  const int64_t grain = GrainFor(0.5 * static_cast<double>(points) * static_cast<double>(chosen));
  const auto sample = [&](float* at, int64_t begin, int64_t end) HWY_ATTR {
    const Columns columns = {at, at + size, at + 2 * size, at + 3 * size};
    for (int64_t c = begin; c < end; ++c) {
      const float* const cloud = xyz + c * points * 3;
      columns.Fill(cloud, points);
      int32_t last = 0;
      for (int64_t k = 0; k < chosen; ++k) {
        if (k > 0) last = columns.Next(points, cloud + 3 * int64_t{last});
        idx[c * chosen + k] = last;
      }
    }
  };
  if (context.ParallelForWithScratch<float>(clouds, grain, 4 * size, sample)) return Status::Ok();
  return Internal("out of memory: ", points, " points");
}

Status SampleTrees(const Context& context, const float* xyz, int64_t clouds, int64_t points, int64_t chosen,
                   int32_t* idx) {
  const Scratch<int64_t> ends = context.Allocate<int64_t>(clouds);
  if (!ends) return Internal("out of memory: ", clouds, " clouds");
  EndsOfBatches(clouds, points, ends.data());
  const PointForest forest(context, ends.data(), clouds);
  POLYOP_RETURN_IF_ERROR(forest.Build(xyz));
  const TreeSampler sampler(context, forest);
  if (!sampler) return Internal("out of memory: ", points, " points");
  context.ParallelFor(clouds, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t c = begin; c < end; ++c) sampler.Run(forest.segment(c), xyz, chosen, idx + c * chosen);
  });
  return Status::Ok();
}

template <class T>
Status FurthestPointSamplingCpu(const FurthestPointSampling&, const Context& context, Tensor<const T, 3> xyz,
                                Tensor<int32_t, 2> idx) {
  const int64_t clouds = xyz.dim(0), points = xyz.dim(1), chosen = idx.dim(1);
  const Scratch<float> widened = context.Allocate<float>(std::is_same_v<T, float> ? 0 : xyz.size());
  if (!widened) return Internal("out of memory: ", points, " points");
  const float* const from = AsFloats(xyz.data(), xyz.size(), widened.data());
  const auto sample = ShouldBuildTree(points, chosen) ? SampleTrees : SampleColumns;
  return sample(context, from, clouds, points, chosen, idx.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(FurthestPointSampling, FurthestPointSamplingCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
