// SPDX-License-Identifier: Apache-2.0
// A tree over each cloud leads a query to its nearest points (point_forest-inl.h, nearest_search-inl.h): the lanes of a
// vector are the points of a leaf, or the boxes of a block of the tree. An item of the parallel loop is a query; the
// task has memory for the candidates of one query.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/points/knn/knn_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/points/knn/knn.h"
#include "ops/points/nearest_of_queries-inl.h"
#include "ops/points/segments.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Points as rows (x, y, z) of floats, in separate memory if a conversion is necessary.
template <class T>
class Rows {
 public:
  Rows(const Context& context, const Tensor<const T, 3>& points, bool transposed)
      : points_(points),
        transposed_(transposed),
        copy_(context.Allocate<float>(transposed || !std::is_same_v<T, float> ? points.size() : 0)) {}

  explicit operator bool() const { return static_cast<bool>(copy_); }
  int64_t count() const { return points_.dim(transposed_ ? 2 : 1); }
  const float* Read(const Context& context) const {
    if (!transposed_) return AsFloats(points_.data(), points_.size(), copy_.data());
    context.ParallelFor(points_.dim(0) * count(), GrainFor(3.0), [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t i = begin; i < end; ++i) {
        const T* const x = points_.data() + i / count() * 3 * count() + i % count();
        for (int64_t a = 0; a < 3; ++a) copy_[3 * i + a] = ToFloat(x[a * count()]);
      }
    });
    return copy_.data();
  }

 private:
  const Tensor<const T, 3> points_;
  const bool transposed_;
  const Scratch<float> copy_;
};

template <class T>
Status KnnCpu(const Knn& op, const Context& context, Tensor<const T, 3> xyz, std::optional<Tensor<const T, 3>> center,
              Tensor<int32_t, 3> idx) {
  const int64_t batches = xyz.dim(0), k = idx.dim(1), centres = idx.dim(2);
  const Rows<T> points(context, xyz, op.transposed), queries(context, center.value_or(xyz), op.transposed);
  const Scratch<int64_t> ends = context.Allocate<int64_t>(batches), query_ends = context.Allocate<int64_t>(batches);
  if (!points || !queries || !ends || !query_ends) return Internal("out of memory: ", points.count(), " points");
  EndsOfBatches(batches, points.count(), ends.data());
  EndsOfBatches(batches, centres, query_ends.data());
  const float* const from = points.Read(context);
  const QueriesOfPoints call = {from, center ? queries.Read(context) : from, ends.data(), query_ends.data(), batches};
  return ForNearest(context, call, k, [&](int64_t q, int64_t batch, const Neighbour* nearest, int64_t found) {
    int32_t* const to = idx.data() + batch * k * centres + q - batch * centres;
    const int64_t first = batch * points.count();
    for (int64_t n = 0; n < k; ++n) to[n * centres] = n < found ? static_cast<int32_t>(nearest[n].index - first) : 0;
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(Knn, KnnCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
