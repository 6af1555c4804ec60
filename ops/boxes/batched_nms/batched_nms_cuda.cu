// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/batched_nms/batched_nms.h"
#include "ops/boxes/boxes_overlap.h"
#include "ops/boxes/detections_cuda.h"

namespace polyop {
namespace {

Status BatchedNmsCuda(const BatchedNms& op, const CudaContext& cuda, Tensor<const float, 4> boxes,
                      Tensor<const float, 3> scores, Tensor<float, 3> dets, Tensor<int32_t, 2> labels,
                      std::optional<Tensor<int32_t, 2>> index) {
  const float* const rows = boxes.data();
  const double threshold = op.iou_threshold;
  return SuppressBatchesCuda<4>(op, cuda, boxes, scores, dets, labels, index, [=] POLYOP_DEVICE(int64_t a, int64_t b) {
    return BoxOverlap::Of(rows + 4 * a, rows + 4 * b, 0).More(threshold);
  });
}

POLYOP_CUDA_KERNEL(BatchedNms, BatchedNmsCuda);

}  // namespace
}  // namespace polyop
