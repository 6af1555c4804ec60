// SPDX-License-Identifier: Apache-2.0
// Batches of point clouds and queries of equal size, converted for a search. Compiled once per instruction set; include
// it from a kernel file.

// Outside of the guard because Highway redefines its macros for each target.
#include "kernels/cpu/simd.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/points/nearest_of_queries-inl.h"

#if defined(POLYOP_OPS_POINTS_CLOUD_BATCHES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_POINTS_CLOUD_BATCHES_INL_H_
#undef POLYOP_OPS_POINTS_CLOUD_BATCHES_INL_H_
#else
#define POLYOP_OPS_POINTS_CLOUD_BATCHES_INL_H_
#endif

#include "ops/points/segments.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
class CloudBatches {
 public:
  /// Takes points [B, N, 3] and queries [B, M, 3].
  CloudBatches(const Context& context, const Tensor<const T, 3>& points, const Tensor<const T, 3>& queries)
      : points_(points),
        queries_(queries),
        ends_(context.Allocate<int64_t>(points.dim(0))),
        query_ends_(context.Allocate<int64_t>(points.dim(0))),
        point_rows_(context.Allocate<float>(kWidens ? points.size() : 0)),
        query_rows_(context.Allocate<float>(kWidens ? queries.size() : 0)) {}

  /// Sets `*call`, which refers to memory of this object.
  Status Read(QueriesOfPoints* call) const {
    if (!ends_ || !query_ends_ || !point_rows_ || !query_rows_) {
      return Internal("out of memory: ", points_.dim(0), " clouds of ", points_.dim(1), " points");
    }
    const int64_t batches = points_.dim(0);
    EndsOfBatches(batches, points_.dim(1), ends_.data());
    EndsOfBatches(batches, queries_.dim(1), query_ends_.data());
    *call = {AsFloats(points_.data(), points_.size(), point_rows_.data()),
             AsFloats(queries_.data(), queries_.size(), query_rows_.data()), ends_.data(), query_ends_.data(), batches};
    return Status::Ok();
  }

 private:
  static constexpr bool kWidens = !std::is_same_v<T, float>;

  const Tensor<const T, 3> points_, queries_;
  const Scratch<int64_t> ends_, query_ends_;
  const Scratch<float> point_rows_, query_rows_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif  // per-target part
