// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/voxels/dynamic_scatter/dynamic_scatter_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/items_by_target.h"
#include "kernels/cpu/reduce_rows_backward-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/type_pairs.h"
#include "ops/voxels/dynamic_scatter/dynamic_scatter_backward.h"
#include "ops/voxels/dynamic_scatter/point_voxels.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Each point gets the gradient of its voxel, divided by count(voxel).
template <class T, class Count>
void SpreadToPoints(const Context& context, const Tensor<const T, 2>& grad, const int32_t* point2voxel,
                    const Tensor<T, 2>& to, const Count& count) {
  const int64_t channels = to.dim(1);
  context.ParallelFor(to.dim(0), GrainFor(2 + 0.2 * static_cast<double>(channels)),
                      [&](int64_t begin, int64_t end) HWY_ATTR {
                        for (int64_t i = begin; i < end; ++i) {
                          const int64_t voxel = point2voxel[i];
                          T* const row = to.data() + i * channels;
                          if (voxel < 0) {
                            std::fill_n(row, channels, FromFloat<T>(0));
                          } else {
                            DivideRow(grad.data() + voxel * channels, channels, count(voxel), row);
                          }
                        }
                      });
}

template <class T>
void ToMaxima(const Context& context, const Tensor<const T, 2>& grad, const Tensor<const T, 2>& feats,
              const Tensor<const T, 2>& maxima, const ItemsByTarget& points, const Tensor<T, 2>& to) {
  const int64_t voxels = maxima.dim(0), channels = maxima.dim(1);
  const double of_voxel = static_cast<double>(points.count()) / static_cast<double>(std::max<int64_t>(voxels, 1));
  context.ParallelFor(voxels, GrainFor(4 + 0.4 * static_cast<double>(channels) * (1 + of_voxel)),
                      [&](int64_t begin, int64_t end) HWY_ATTR {
                        for (int64_t v = begin; v < end; ++v) {
                          const int32_t* const rows = points.order() + points.begin(v);
                          ExtremeOfRowsBackward<true>(
                              feats.data(), [&](int64_t r) { return int64_t{rows[r]}; },
                              points.end(v) - points.begin(v), channels, maxima.data() + v * channels,
                              grad.data() + v * channels, to.data());
                        }
                      });
}

template <class Types, class T = typename Types::Real>
Status DynamicScatterBackwardCpu(const DynamicScatterBackward& op, const Context& context, Tensor<const T, 2> grad,
                                 Tensor<const T, 2> feats, Tensor<const typename Types::Int, 2>,
                                 Tensor<const T, 2> voxel_feats, Tensor<const int32_t, 1> point2voxel,
                                 Tensor<T, 2> grad_feats) {
  const int64_t points = feats.dim(0), voxels = voxel_feats.dim(0), channels = feats.dim(1);
  POLYOP_RETURN_IF_ERROR(CheckPointVoxels(point2voxel, voxels));
  switch (op.reduce_type) {
    case DynamicScatter::Reduce::kSum:
      SpreadToPoints(context, grad, point2voxel.data(), grad_feats, [](int64_t) { return 1; });
      return Status::Ok();
    case DynamicScatter::Reduce::kMean: {
      const Scratch<int32_t> counts = context.Allocate<int32_t>(voxels);
      if (!counts) return Internal("out of memory: counts of ", voxels, " voxels");
      std::fill_n(counts.data(), voxels, 0);
      for (int64_t i = 0; i < points; ++i) {
        if (point2voxel[i] >= 0) ++counts[point2voxel[i]];
      }
      SpreadToPoints(context, grad, point2voxel.data(), grad_feats, [&](int64_t voxel) { return counts[voxel]; });
      return Status::Ok();
    }
    case DynamicScatter::Reduce::kMax: break;
  }
  ItemsByTarget by_voxel(context, points, voxels);
  if (!by_voxel) return Internal("out of memory: ", points, " points of ", voxels, " voxels");
  by_voxel.Group(points, [&](int64_t i) { return point2voxel[i]; });
  for (int64_t i = 0; by_voxel.count() < points && i < points; ++i) {
    if (point2voxel[i] < 0) std::fill_n(grad_feats.data() + i * channels, channels, FromFloat<T>(0));
  }
  ToMaxima(context, grad, feats, voxel_feats, by_voxel, grad_feats);
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(DynamicScatterBackward, DynamicScatterBackwardCpu, F32I32, F32I64, F16I32, F16I64, BF16I32, BF16I64);
}  // namespace polyop
#endif
