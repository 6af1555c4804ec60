// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/batched_rotated_nms/batched_rotated_nms.h"
#include "ops/boxes/detections_reference.h"
#include "ops/boxes/rotated_boxes_reference.h"

namespace polyop {
namespace {

Status BatchedRotatedNmsReference(const BatchedRotatedNms& op, const Context&, Tensor<const float, 4> boxes,
                                  Tensor<const float, 3> scores, Tensor<float, 3> dets, Tensor<int32_t, 2> labels) {
  return reference::SuppressBatches(op, 5, boxes, scores, dets, labels, std::nullopt, reference::RotatedIou);
}
POLYOP_REFERENCE_KERNEL(BatchedRotatedNms, BatchedRotatedNmsReference);

}  // namespace
}  // namespace polyop
