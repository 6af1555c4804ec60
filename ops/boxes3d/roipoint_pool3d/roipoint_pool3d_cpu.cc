// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes3d/roipoint_pool3d/roipoint_pool3d_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/boxes3d/points_in_box-inl.h"
#include "ops/boxes3d/roipoint_pool3d/roipoint_pool3d.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status RoipointPool3dCpu(const RoipointPool3d& op, const Context& context, Tensor<const T, 3> points,
                         Tensor<const T, 3> features, Tensor<const T, 3> boxes, Tensor<T, 4> pooled,
                         Tensor<int32_t, 2> empty) {
  const int64_t count = points.dim(1), channels = features.dim(2), width = 3 + channels, rows = op.num_sampled_points;
  const int64_t each = boxes.dim(1);
  const PointColumns<T> columns(context, points);
  POLYOP_RETURN_IF_ERROR(columns.Read(context));
  const double nanoseconds = 0.7 * static_cast<double>(count) + 0.3 * static_cast<double>(rows * width);
  context.ParallelFor(boxes.dim(0) * each, GrainFor(nanoseconds), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t batch = i / each;
      T* const to = pooled.data() + i * rows * width;
      int64_t found = 0;
      columns.ForInside(Box3d::OfBottom(boxes.data() + 7 * i), batch, [&](int64_t point) {
        const int64_t row = batch * count + point;
        T* const at = to + found * width;
        std::copy_n(points.data() + 3 * row, 3, at);
        std::copy_n(features.data() + channels * row, channels, at + 3);
        return ++found < rows;
      });
      empty[i] = found == 0;
      if (found == 0) {
        std::fill_n(to, rows * width, FromFloat<T>(0));
        continue;
      }
      for (int64_t k = found; k < rows; ++k) std::copy_n(to + (k - found) * width, width, to + k * width);
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(RoipointPool3d, RoipointPool3dCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
