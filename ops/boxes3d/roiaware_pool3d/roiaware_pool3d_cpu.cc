// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes3d/roiaware_pool3d/roiaware_pool3d_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"
#include "ops/boxes3d/points_in_box-inl.h"
#include "ops/boxes3d/roiaware_pool3d/cell_keys-inl.h"
#include "ops/boxes3d/roiaware_pool3d/roiaware_pool3d.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Pools the features of the points of a cell.
template <class T>
void PoolCell(const T* features, int64_t channels, std::span<const CellKey> points, RoiawarePool3d::Mode mode, T* to) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto number = hn::Set(d, static_cast<float>(points.size()));
  for (int64_t c = 0; c < channels; c += lanes) {
    const auto width = static_cast<size_t>(std::min(lanes, channels - c));
    const auto load = [&](CellKey key)
                          HWY_ATTR { return LoadFloatN(d, features + PointOfKey(key) * channels + c, width); };
    if (mode == RoiawarePool3d::Mode::kAvg) {
      auto sum = hn::Zero(d);
      for (const CellKey key : points) sum = hn::Add(sum, load(key));
      StoreFloatN(hn::Div(sum, number), d, to + c, width);
    } else {
      auto maximum = hn::Set(d, NAN);  // no value yet
      for (const CellKey key : points) {
        const auto v = load(key);
        maximum = hn::IfThenElse(hn::Or(hn::IsNaN(v), hn::Le(v, maximum)), maximum, v);
      }
      StoreFloatN(hn::IfThenZeroElse(hn::IsNaN(maximum), maximum), d, to + c, width);
    }
  }
}

template <class T>
Status RoiawarePool3dCpu(const RoiawarePool3d& op, const Context& context, Tensor<const T, 2> rois,
                         Tensor<const T, 2> points, Tensor<const T, 2> features, Tensor<T, 5> pooled) {
  const int64_t count = points.dim(0), channels = features.dim(1), row = pooled.size() / rois.dim(0);
  const PointColumns<T> columns(context, Tensor<const T, 3>(points.data(), {1, count, 3}));
  POLYOP_RETURN_IF_ERROR(columns.Read(context));
  const int64_t grain = GrainFor(0.7 * static_cast<double>(count) + 0.1 * static_cast<double>(row));
  const bool stream = ShouldStream(row * static_cast<int64_t>(sizeof(T)), rois.dim(0));
  const int64_t max_points = op.max_pts_per_voxel - 1;
  // A box may contain all points.
  const auto pool = [&](CellKey* keys, int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t r = begin; r < end; ++r) {
      T* const to = pooled.data() + r * row;
      FillWithZeros(to, row, stream);
      const BoxCells cells = BoxCells::Of(rois.data() + 7 * r, op.out_size[0], op.out_size[1], op.out_size[2]);
      const int64_t inside = FindCellKeys(cells, columns, points.data(), keys);
      ForEachCell({keys, static_cast<size_t>(inside)}, max_points, [&](int64_t cell, std::span<const CellKey> taken) {
        PoolCell(features.data(), channels, taken, op.mode, to + cell * channels);
      });
    }
    if (stream) hwy::FlushStream();
  };
  if (context.ParallelForWithScratch<CellKey>(rois.dim(0), grain, count, pool)) return Status::Ok();
  return Internal("out of memory: scratch for ", count, " points");
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(RoiawarePool3d, RoiawarePool3dCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
