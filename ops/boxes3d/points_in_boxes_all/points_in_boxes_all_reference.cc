// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes3d/box3d_reference.h"
#include "ops/boxes3d/points_in_boxes_all/points_in_boxes_all.h"

namespace polyop {
namespace {

Status PointsInBoxesAllReference(const PointsInBoxesAll&, const Context&, Tensor<const double, 3> points,
                                 Tensor<const double, 3> boxes, Tensor<int32_t, 3> inside) {
  const int64_t each = points.dim(1), count = boxes.dim(1);
  for (int64_t i = 0; i < points.dim(0) * each; ++i) {
    for (int64_t k = 0; k < count; ++k) {
      inside[i * count + k] = IsInBox(points.data() + 3 * i, boxes.data() + (i / each * count + k) * 7);
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(PointsInBoxesAll, PointsInBoxesAllReference);

}  // namespace
}  // namespace polyop
