// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/points/chamfer_distance/chamfer_distance_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/points/chamfer_distance/chamfer_distance.h"
#include "ops/points/nearest_of_queries-inl.h"
#include "ops/points/segments.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The points of all clouds in the layout of the search: fp32 rows of 3 coordinates; the third is 0 if a cloud has two.
template <class T>
class Clouds {
 public:
  Clouds(const Context& context, const Tensor<const T, 3>& points)
      : points_(points),
        ends_(context.Allocate<int64_t>(points.dim(0))),
        rows_(context.Allocate<float>(3 * points.dim(0) * points.dim(1))) {}

  bool Read() const {
    if (!ends_ || !rows_) return false;
    EndsOfBatches(points_.dim(0), points_.dim(1), ends_.data());
    const int64_t coordinates = points_.dim(2);
    const T* from = points_.data();
    for (float* to = rows_.data(); to < rows_.data() + rows_.size(); to += 3, from += coordinates) {
      to[0] = ToFloat(from[0]);
      to[1] = ToFloat(from[1]);
      to[2] = coordinates == 3 ? ToFloat(from[2]) : 0;
    }
    return true;
  }
  const float* rows() const { return rows_.data(); }
  const int64_t* ends() const { return ends_.data(); }

 private:
  const Tensor<const T, 3> points_;
  const Scratch<int64_t> ends_;
  const Scratch<float> rows_;
};

template <class T>
Status FindNearest(const Context& context, const Clouds<T>& queries, const Clouds<T>& points, int64_t points_of_cloud,
                   Tensor<T, 2> dist, Tensor<int32_t, 2> idx) {
  const QueriesOfPoints call = {points.rows(), queries.rows(), points.ends(), queries.ends(), dist.dim(0)};
  return ForNearest(context, call, 1, [&](int64_t q, int64_t batch, const Neighbour* nearest, int64_t found) {
    dist[q] = FromFloat<T>(found > 0 ? static_cast<float>(nearest->squared) : INFINITY);
    idx[q] = found > 0 ? static_cast<int32_t>(nearest->index - batch * points_of_cloud) : 0;
  });
}

template <class T>
Status ChamferDistanceCpu(const ChamferDistance&, const Context& context, Tensor<const T, 3> xyz1,
                          Tensor<const T, 3> xyz2, Tensor<T, 2> dist1, Tensor<T, 2> dist2, Tensor<int32_t, 2> idx1,
                          Tensor<int32_t, 2> idx2) {
  const Clouds<T> first(context, xyz1), second(context, xyz2);
  if (!first.Read() || !second.Read()) {
    return Internal("out of memory: ", xyz1.dim(0), " clouds of ", xyz1.dim(1), " and ", xyz2.dim(1), " points");
  }
  POLYOP_RETURN_IF_ERROR(FindNearest(context, first, second, xyz2.dim(1), dist1, idx1));
  return FindNearest(context, second, first, xyz1.dim(1), dist2, idx2);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(ChamferDistance, ChamferDistanceCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
