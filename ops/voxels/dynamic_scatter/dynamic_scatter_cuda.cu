// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device_sort.h"
#include "kernels/cuda/reduce_rows.h"
#include "kernels/cuda/sorted_runs.h"
#include "ops/voxels/dynamic_scatter/dynamic_scatter.h"

namespace polyop {
namespace {

// The coordinates of points. Points with a negative coordinate form one run at the end.
template <class I>
struct Rows {
  const I* coors;
  int64_t columns;

  POLYOP_HD bool Inside(int64_t i) const {
    for (int64_t c = 0; c < columns; ++c) {
      if (coors[i * columns + c] < 0) return false;
    }
    return true;
  }
  POLYOP_HD bool Differ(int64_t i, int64_t j) const {
    const bool inside = Inside(i);
    if (!inside || !Inside(j)) return inside != Inside(j);
    for (int64_t c = 0; c < columns; ++c) {
      if (coors[i * columns + c] != coors[j * columns + c]) return true;
    }
    return false;
  }
};

// Sorts the points by their rows, starting with the last columns: a key holds two columns of 31 bits or one of 63. The
// bit above marks points without a voxel.
template <class I>
Status SortRows(const CudaContext& cuda, const Rows<I>& rows, int64_t count, const int32_t** order) {
  constexpr int64_t kColumnsOfKey = sizeof(I) == 4 ? 2 : 1;
  constexpr int kBits = 8 * static_cast<int>(sizeof(I)) - 1;  // bits per column
  SortPairs sort = SortPairs::Allocate(cuda, count);
  for (int64_t last = rows.columns; last > 0; last -= kColumnsOfKey) {
    const int64_t first = last > kColumnsOfKey ? last - kColumnsOfKey : 0;
    const bool begins = last == rows.columns;
    uint64_t* const keys = sort.keys;
    int32_t* const values = sort.values;
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) {
      if (begins) values[i] = static_cast<int32_t>(i);
      const int64_t row = values[i];
      uint64_t key = 0;
      for (int64_t c = first; c < last; ++c) {
        key = key << kBits | static_cast<uint64_t>(rows.coors[row * rows.columns + c]);
      }
      keys[i] = rows.Inside(row) ? key : uint64_t{1} << (kColumnsOfKey * kBits);
    }));
    POLYOP_RETURN_IF_ERROR(sort.Sort(cuda, kColumnsOfKey * kBits + 1));
  }
  *order = sort.values;
  return Status::Ok();
}

template <class Reduction, class T>
Status ReduceVoxels(const CudaContext& cuda, const T* feats, int64_t points, int64_t channels, const int32_t* order,
                    const SortedRuns& runs, const int64_t* voxels, T* to) {
  const Divider by_channels(channels);
  return ForEach(cuda, points * channels, [=] POLYOP_DEVICE(int64_t i) {
    int64_t c;
    const int64_t v = by_channels.Split(i, &c);
    if (v >= *voxels) return;
    to[i] = FromFloat<T>(ReduceColumn<Reduction>(runs.starts[v], runs.starts[v + 1],
                                                 [&](int64_t k) { return ToFloat(feats[order[k] * channels + c]); }));
  });
}

template <class T, class I>
Status DynamicScatterCuda(const DynamicScatter& op, const CudaContext& cuda, Tensor<const T, 2> feats,
                          Tensor<const I, 2> coors, Pending<T, 2> voxel_feats, Pending<I, 2> voxel_coors,
                          Tensor<int32_t, 1> point2voxel, Pending<int32_t, 1> counts) {
  const int64_t points = coors.dim(0), columns = coors.dim(1), channels = feats.dim(1);
  Tensor<T, 2> reduced;
  Tensor<I, 2> cells;
  Tensor<int32_t, 1> sizes;
  int64_t *feats_count, *coors_count, *counts_count;
  POLYOP_RETURN_IF_ERROR(voxel_feats.AllocateUpperBound(points, &reduced, &feats_count));
  POLYOP_RETURN_IF_ERROR(voxel_coors.AllocateUpperBound(points, &cells, &coors_count));
  POLYOP_RETURN_IF_ERROR(counts.AllocateUpperBound(points, &sizes, &counts_count));
  int64_t* const voxels = cuda.Allocate<int64_t>(1);
  const Rows<I> rows{coors.data(), columns};
  const int32_t* order = nullptr;
  POLYOP_RETURN_IF_ERROR(SortRows(cuda, rows, points, &order));
  SortedRuns runs;
  POLYOP_RETURN_IF_ERROR(SortedRuns::Find(
      cuda, points, [=] POLYOP_DEVICE(int64_t i) { return rows.Differ(order[i], order[i - 1]); }, &runs));
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, 1, [=] POLYOP_DEVICE(int64_t) {
    *voxels = runs.count() - (points > 0 && !rows.Inside(order[points - 1]) ? 1 : 0);
    *feats_count = *coors_count = *counts_count = *voxels;
  }));
  I* const to_cells = cells.data();
  int32_t *const count_of = sizes.data(), *const voxel_of = point2voxel.data();
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, points, [=] POLYOP_DEVICE(int64_t i) {
    const int64_t mine = runs.RunOf(i);
    voxel_of[order[i]] = mine < *voxels ? static_cast<int32_t>(mine) : -1;
    if (i >= *voxels) return;
    count_of[i] = static_cast<int32_t>(runs.SizeOf(i));
    for (int64_t c = 0; c < columns; ++c) to_cells[i * columns + c] = rows.coors[order[runs.starts[i]] * columns + c];
  }));
  const T* const from = feats.data();
  T* const to = reduced.data();
  switch (op.reduce_type) {
    case DynamicScatter::Reduce::kMax:
      return ReduceVoxels<MaxOfColumn>(cuda, from, points, channels, order, runs, voxels, to);
    case DynamicScatter::Reduce::kMean:
      return ReduceVoxels<MeanOfColumn>(cuda, from, points, channels, order, runs, voxels, to);
    case DynamicScatter::Reduce::kSum:
      return ReduceVoxels<SumOfColumn>(cuda, from, points, channels, order, runs, voxels, to);
  }
  return Internal("no such reduction");
}

POLYOP_CUDA_KERNELS(DynamicScatter, DynamicScatterCuda, (float, int32_t), (Half, int32_t), (BFloat16, int32_t),
                    (float, int64_t), (Half, int64_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
