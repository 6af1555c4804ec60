// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes/batched_nms/batched_nms_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/boxes/batched_nms/batched_nms.h"
#include "ops/boxes/detections-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

Status BatchedNmsCpu(const BatchedNms& op, const Context& context, Tensor<const float, 4> boxes,
                     Tensor<const float, 3> scores, Tensor<float, 3> dets, Tensor<int32_t, 2> labels,
                     std::optional<Tensor<int32_t, 2>> index) {
  return SuppressBatches<UprightBoxes>(
      op, context, boxes, scores, dets, labels, index,
      [&](void* memory, int64_t capacity) { return UprightBoxes::In(memory, capacity, op.iou_threshold, 0); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(BatchedNms, BatchedNmsCpu);
}  // namespace polyop
#endif
