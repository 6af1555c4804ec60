// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/batched_rotated_nms/batched_rotated_nms.h"
#include "ops/boxes/detections_cuda.h"
#include "ops/boxes/rotated_overlaps_cuda.h"

namespace polyop {
namespace {

Status BatchedRotatedNmsCuda(const BatchedRotatedNms& op, const CudaContext& cuda, Tensor<const float, 4> boxes,
                             Tensor<const float, 3> scores, Tensor<float, 3> dets, Tensor<int32_t, 2> labels) {
  RotatedOverlaps rule;
  POLYOP_RETURN_IF_ERROR(RotatedOverlaps::Prepare(cuda, boxes.data(), boxes.size() / 5, op.iou_threshold, &rule));
  return SuppressBatchesCuda<5>(op, cuda, boxes, scores, dets, labels, std::nullopt, rule);
}

POLYOP_CUDA_KERNEL(BatchedRotatedNms, BatchedRotatedNmsCuda);

}  // namespace
}  // namespace polyop
