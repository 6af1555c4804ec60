// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/diff_iou_rotated/diff_iou_rotated.h"
#include "ops/boxes/diff_iou_rotated/rotated_iou_reference.h"

namespace polyop {
namespace {

Status DiffIouRotatedReference(const DiffIouRotated& op, const Context&, Tensor<const double, 3> boxes_a,
                               Tensor<const double, 3> boxes_b, Tensor<double, 2> iou) {
  for (int64_t i = 0; i < iou.size(); ++i) {
    reference::IouBox of_a, of_b;
    iou.data()[i] =
        reference::IouWithSlopes(reference::IouBoxOf(boxes_a.data() + i * boxes_a.dim(2), op.dimensions),
                                 reference::IouBoxOf(boxes_b.data() + i * boxes_b.dim(2), op.dimensions), &of_a, &of_b);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(DiffIouRotated, DiffIouRotatedReference);

}  // namespace
}  // namespace polyop
