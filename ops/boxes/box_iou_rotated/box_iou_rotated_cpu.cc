// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/box_iou_rotated/box_iou_rotated.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes/box_iou_rotated/box_iou_rotated_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/boxes/box_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status Measure(const BoxIouRotated& op, const Context& context, int64_t batches, int64_t rows, int64_t columns,
               const T* boxes_a, const T* boxes_b, T* overlap) {
  const auto boxes_of = [](const T* from) { return [from](int64_t i) { return BoxIouRotated::BoxOf(from + 5 * i); }; };
  return MeasurePairs<RotatedBox>(
      context, batches, rows, columns, boxes_of(boxes_a), boxes_of(boxes_b), [](const RotatedBox& box) { return box; },
      [&](const RotatedBox& a, const RotatedBox& b) { return op.Measure(a, b); }, overlap);
}

template <class T>
Status BoxIouRotatedCpu(const BoxIouRotated& op, const Context& context, Tensor<const T, 2> boxes_a,
                        Tensor<const T, 2> boxes_b, Tensor<T, 2> overlap) {
  return Measure(op, context, 1, boxes_a.dim(0), boxes_b.dim(0), boxes_a.data(), boxes_b.data(), overlap.data());
}

template <class T>
Status BoxIouRotatedOfBatchesCpu(const BoxIouRotated& op, const Context& context, Tensor<const T, 3> boxes_a,
                                 Tensor<const T, 3> boxes_b, Tensor<T, 3> overlap) {
  return Measure(op, context, boxes_a.dim(0), boxes_a.dim(1), boxes_b.dim(1), boxes_a.data(), boxes_b.data(),
                 overlap.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(BoxIouRotated, BoxIouRotatedCpu, float, Half, BFloat16);
POLYOP_CPU_KERNELS(BoxIouRotated, BoxIouRotatedOfBatchesCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
