// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes3d/points_in_boxes_all/points_in_boxes_all_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/boxes3d/points_in_box-inl.h"
#include "ops/boxes3d/points_in_boxes_all/points_in_boxes_all.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Processes a vector of boxes at a time, for one point after the other.
template <class T>
Status PointsInBoxesAllCpu(const PointsInBoxesAll&, const Context& context, Tensor<const T, 3> points,
                           Tensor<const T, 3> boxes, Tensor<int32_t, 3> inside) {
  const int64_t batches = boxes.dim(0), count = boxes.dim(1), each = points.dim(1);
  const BoxColumns<T> columns(context, boxes);
  POLYOP_RETURN_IF_ERROR(columns.Read());
  const double nanoseconds = 5.0 + 1.5 * static_cast<double>(count);
  context.ParallelFor(batches * each, GrainFor(nanoseconds), [&](int64_t begin, int64_t end) HWY_ATTR {
    const hn::ScalableTag<double> d;
    const hn::Rebind<int32_t, decltype(d)> di;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t batch = i / each;
      const T* const point = points.data() + 3 * i;
      int32_t* const to = inside.data() + i * count;
      for (int64_t k = 0; k < count; k += lanes) {
        const auto holds = columns.Hold(d, batch, k, point);
        const auto ones = hn::DemoteTo(di, hn::IfThenElseZero(holds, hn::Set(d, 1.0)));
        hn::StoreN(ones, di, to + k, static_cast<size_t>(std::min(lanes, count - k)));
      }
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
POLYOP_CPU_KERNELS(PointsInBoxesAll, PointsInBoxesAllCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
