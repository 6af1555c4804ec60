// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/voxels/dynamic_scatter/dynamic_scatter_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/reduce_rows-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/voxels/dynamic_scatter/dynamic_scatter.h"
#include "ops/voxels/dynamic_scatter/sorted_coordinates.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
struct PickedRows {
  const T* feats;
  const int32_t* order;
  int64_t channels;

  const T* Row(int64_t r) const { return feats + order[r] * channels; }
  template <class D>
  HWY_INLINE hn::Vec<D> Weigh(D, int64_t, hn::Vec<D> row) const {
    return row;
  }
};

constexpr int64_t kAhead = 16;  // distance of the prefetch, in rows

template <class Reduction, class T, class I>
void ReduceVoxels(const Context& context, const Tensor<const T, 2>& feats, const SortedCoordinates<I>& sorted, T* to) {
  const int64_t channels = feats.dim(1), bytes = channels * static_cast<int64_t>(sizeof(T));
  const PickedRows<T> rows{feats.data(), sorted.order(), channels};
  const double of_voxel = static_cast<double>(sorted.kept()) / static_cast<double>(std::max<int64_t>(1, sorted.runs()));
  context.ParallelFor(sorted.runs(), GrainFor(4 + 0.2 * static_cast<double>(channels) * (1 + of_voxel)),
                      [&](int64_t begin, int64_t end) HWY_ATTR {
                        for (int64_t v = begin; v < end; ++v) {
                          const int64_t first = sorted.starts()[v], last = sorted.starts()[v + 1];
                          for (int64_t r = first + kAhead; r < std::min(last + kAhead, sorted.kept()); ++r) {
                            const char* const row = reinterpret_cast<const char*>(rows.Row(r));
                            for (int64_t b = 0; b < std::min<int64_t>(bytes, 512); b += 64) __builtin_prefetch(row + b);
                          }
                          ReduceRows<Reduction>(rows, first, last, channels, to + v * channels);
                        }
                      });
}

template <class T, class I>
Status Scatter(const DynamicScatter& op, const Context& context, const Tensor<const T, 2>& feats,
               const Tensor<const I, 2>& coors, const Pending<T, 2>& voxel_feats, const Pending<I, 2>& voxel_coors,
               const Tensor<int32_t, 1>& point2voxel, const Pending<int32_t, 1>& counts) {
  const int64_t points = coors.dim(0), columns = coors.dim(1);
  SortedCoordinates<I> sorted(context, coors.data(), points, columns);
  POLYOP_RETURN_IF_ERROR(sorted.Sort());
  Tensor<T, 2> reduced;
  Tensor<I, 2> cells;
  Tensor<int32_t, 1> sizes;
  POLYOP_RETURN_IF_ERROR(voxel_feats.Allocate(sorted.runs(), &reduced));
  POLYOP_RETURN_IF_ERROR(voxel_coors.Allocate(sorted.runs(), &cells));
  POLYOP_RETURN_IF_ERROR(counts.Allocate(sorted.runs(), &sizes));
  if (sorted.kept() < points) std::fill_n(point2voxel.data(), points, -1);
  context.ParallelFor(sorted.runs(), 1 << 12, [&](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) {
      const int32_t first = sorted.starts()[v], last = sorted.starts()[v + 1];
      std::copy_n(coors.data() + sorted.order()[first] * columns, columns, cells.data() + v * columns);
      sizes[v] = last - first;
      for (int32_t i = first; i < last; ++i) point2voxel[sorted.order()[i]] = static_cast<int32_t>(v);
    }
  });
  switch (op.reduce_type) {
    case DynamicScatter::Reduce::kMax: ReduceVoxels<MaxOfRows>(context, feats, sorted, reduced.data()); break;
    case DynamicScatter::Reduce::kMean: ReduceVoxels<MeanOfRows>(context, feats, sorted, reduced.data()); break;
    case DynamicScatter::Reduce::kSum: ReduceVoxels<SumOfRows>(context, feats, sorted, reduced.data()); break;
  }
  return Status::Ok();
}

// One function per coordinate type: the dispatch table takes templates with one argument.
template <class T>
Status ScatterI32(const DynamicScatter& op, const Context& context, Tensor<const T, 2> feats,
                  Tensor<const int32_t, 2> coors, Pending<T, 2> voxel_feats, Pending<int32_t, 2> voxel_coors,
                  Tensor<int32_t, 1> point2voxel, Pending<int32_t, 1> counts) {
  return Scatter(op, context, feats, coors, voxel_feats, voxel_coors, point2voxel, counts);
}
template <class T>
Status ScatterI64(const DynamicScatter& op, const Context& context, Tensor<const T, 2> feats,
                  Tensor<const int64_t, 2> coors, Pending<T, 2> voxel_feats, Pending<int64_t, 2> voxel_coors,
                  Tensor<int32_t, 1> point2voxel, Pending<int32_t, 1> counts) {
  return Scatter(op, context, feats, coors, voxel_feats, voxel_coors, point2voxel, counts);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(DynamicScatter, ScatterI32, float, Half, BFloat16);
POLYOP_CPU_KERNELS(DynamicScatter, ScatterI64, float, Half, BFloat16);
}  // namespace polyop
#endif
