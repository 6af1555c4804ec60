// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes3d/box3d_reference.h"
#include "ops/boxes3d/points_in_boxes_part/points_in_boxes_part.h"

namespace polyop {
namespace {

Status PointsInBoxesPartReference(const PointsInBoxesPart&, const Context&, Tensor<const double, 3> points,
                                  Tensor<const double, 3> boxes, Tensor<int32_t, 2> box) {
  const int64_t each = points.dim(1), count = boxes.dim(1);
  for (int64_t i = 0; i < points.dim(0) * each; ++i) {
    box[i] = -1;
    for (int64_t k = count - 1; k >= 0; --k) {
      if (IsInBox(points.data() + 3 * i, boxes.data() + (i / each * count + k) * 7)) box[i] = static_cast<int32_t>(k);
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(PointsInBoxesPart, PointsInBoxesPartReference);

}  // namespace
}  // namespace polyop
