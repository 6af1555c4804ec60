// SPDX-License-Identifier: Apache-2.0
#include "ops/points/knn/knn.h"
#include "ops/points/nearest_cuda.h"

namespace polyop {
namespace {

// Copies transposed points to rows (x, y, z).
template <class T>
Status KnnRows(const CudaContext& cuda, const Tensor<const T, 3>& points, T* rows) {
  const Divider count(points.dim(2));
  return ForEach(cuda, points.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t point;
    const int64_t line = count.Split(i, &point);  // batch * 3 + axis
    rows[(line / 3 * count.divisor() + point) * 3 + line % 3] = points[i];
  });
}

template <class T>
struct KnnSearch {
  using State = NearestState;

  const T* centres;
  BatchRanges batches;
  NearestLists lists;
  int32_t* idx;

  POLYOP_HD PointRange Start(int64_t q, State& state) const {
    const PointRange range = batches.Of(q);
    state.Start(lists, q, centres + 3 * q, range.begin);
    return range;
  }
  POLYOP_HD void Offer(State& state, const float* point, int64_t row) const { state.Offer(point, row, lists.k); }
  POLYOP_HD void Finish(State& state, int64_t q) const { WriteNearest(*this, state.nearest, q); }
  POLYOP_HD void Write(int64_t q, int64_t k, bool has, double /*squared*/, int32_t index) const {
    int64_t centre;
    const int64_t batch = batches.queries.Split(q, &centre);
    idx[(batch * lists.k + k) * batches.queries.divisor() + centre] = has ? index : 0;
  }
};

template <class T>
Status KnnCuda(const Knn& op, const CudaContext& cuda, Tensor<const T, 3> xyz, std::optional<Tensor<const T, 3>> center,
               Tensor<int32_t, 3> idx) {
  const int64_t batches = xyz.dim(0), points = xyz.dim(op.transposed ? 2 : 1), centres = idx.dim(2);
  const T *from = xyz.data(), *queries = center ? center->data() : from;
  T* const rows = op.transposed ? cuda.Allocate<T>(xyz.size()) : nullptr;
  T* const query_rows = op.transposed && center ? cuda.Allocate<T>(center->size()) : nullptr;
  const NearestLists lists = NearestLists::Allocate(cuda, batches * centres, idx.dim(1));
  if (op.transposed) {
    POLYOP_RETURN_IF_ERROR(KnnRows(cuda, xyz, rows));
    if (center) POLYOP_RETURN_IF_ERROR(KnnRows(cuda, *center, query_rows));
    from = rows;
    queries = center ? query_rows : rows;
  }
  return SearchNearest(cuda, from, batches * points, batches * centres,
                       KnnSearch<T>{queries, BatchRanges(points, centres), lists, idx.data()});
}

POLYOP_CUDA_KERNELS(Knn, KnnCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
