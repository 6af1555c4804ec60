// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes/batched_rotated_nms/batched_rotated_nms_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/boxes/batched_rotated_nms/batched_rotated_nms.h"
#include "ops/boxes/detections-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

Status BatchedRotatedNmsCpu(const BatchedRotatedNms& op, const Context& context, Tensor<const float, 4> boxes,
                            Tensor<const float, 3> scores, Tensor<float, 3> dets, Tensor<int32_t, 2> labels) {
  return SuppressBatches<RotatedBoxes>(
      op, context, boxes, scores, dets, labels, std::nullopt,
      [&](void* memory, int64_t capacity) { return RotatedBoxes::In(memory, capacity, {op.iou_threshold}); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(BatchedRotatedNms, BatchedRotatedNmsCpu);
}  // namespace polyop
#endif
