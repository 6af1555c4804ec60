// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/boxes/batched_nms/batched_nms.h"
#include "ops/boxes/detections_reference.h"

namespace polyop {
namespace {

double Iou(const float* a, const float* b) {
  const double width = std::fmin(a[2], b[2]) - static_cast<double>(std::fmax(a[0], b[0]));
  const double height = std::fmin(a[3], b[3]) - static_cast<double>(std::fmax(a[1], b[1]));
  for (int i = 0; i < 4; ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) return 0;
  }
  if (!(width > 0) || !(height > 0)) return 0;
  const auto area = [](const float* box) {
    return (static_cast<double>(box[2]) - box[0]) * (static_cast<double>(box[3]) - box[1]);
  };
  return width * height / (area(a) + area(b) - width * height);
}

Status BatchedNmsReference(const BatchedNms& op, const Context&, Tensor<const float, 4> boxes,
                           Tensor<const float, 3> scores, Tensor<float, 3> dets, Tensor<int32_t, 2> labels,
                           std::optional<Tensor<int32_t, 2>> index) {
  return reference::SuppressBatches(op, 4, boxes, scores, dets, labels, index, Iou);
}
POLYOP_REFERENCE_KERNEL(BatchedNms, BatchedNmsReference);

}  // namespace
}  // namespace polyop
