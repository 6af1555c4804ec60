// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/diff_iou_rotated/diff_iou_rotated_backward.h"
#include "ops/boxes/diff_iou_rotated/rotated_iou_reference.h"

namespace polyop {
namespace {

void WriteRow(const reference::IouBox& slope, double grad, int64_t dimensions, double* row) {
  for (size_t k = 0; k < slope.size(); ++k) {
    if (dimensions == 3 || (k != 2 && k != 5)) *row++ = grad * slope[k];
  }
}

Status DiffIouRotatedBackwardReference(const DiffIouRotatedBackward& op, const Context&,
                                       Tensor<const double, 2> grad_iou, Tensor<const double, 3> boxes_a,
                                       Tensor<const double, 3> boxes_b, std::optional<Tensor<double, 3>> grad_boxes_a,
                                       std::optional<Tensor<double, 3>> grad_boxes_b) {
  const int64_t columns = boxes_a.dim(2);
  for (int64_t i = 0; i < grad_iou.size(); ++i) {
    reference::IouBox of_a, of_b;
    reference::IouWithSlopes(reference::IouBoxOf(boxes_a.data() + i * columns, op.dimensions),
                             reference::IouBoxOf(boxes_b.data() + i * columns, op.dimensions), &of_a, &of_b);
    const double grad = grad_iou.data()[i];
    if (grad_boxes_a) WriteRow(of_a, grad, op.dimensions, grad_boxes_a->data() + i * columns);
    if (grad_boxes_b) WriteRow(of_b, grad, op.dimensions, grad_boxes_b->data() + i * columns);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(DiffIouRotatedBackward, DiffIouRotatedBackwardReference);

}  // namespace
}  // namespace polyop
