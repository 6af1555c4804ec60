// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes3d/box3d_overlap.h"
#include "ops/boxes3d/boxes_iou3d/boxes_iou3d.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes3d/boxes_iou3d/boxes_iou3d_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/boxes/box_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status BoxesIou3dCpu(const BoxesIou3d& op, const Context& context, Tensor<const T, 2> boxes_a,
                     Tensor<const T, 2> boxes_b, Tensor<T, 2> overlap) {
  const auto boxes_of = [](const Tensor<const T, 2>& rows) {
    return [data = rows.data()](int64_t i) { return Box3d::OfCentre(data + 7 * i); };
  };
  return MeasurePairs<Box3d>(
      context, 1, boxes_a.dim(0), boxes_b.dim(0), boxes_of(boxes_a), boxes_of(boxes_b),
      [](const Box3d& box) { return box.bev; }, [&](const Box3d& a, const Box3d& b) { return op.Measure(a, b); },
      overlap.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(BoxesIou3d, BoxesIou3dCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
