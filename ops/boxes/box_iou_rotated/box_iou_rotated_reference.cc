// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/boxes/box_iou_rotated/box_iou_rotated.h"
#include "ops/boxes/rotated_boxes_reference.h"

namespace polyop {
namespace {

double Overlap(const BoxIouRotated& op, const double* a, const double* b) {
  for (int k = 0; k < 5; ++k) {
    if (!std::isfinite(a[k]) || !std::isfinite(b[k])) return 0;
  }
  const double area_a = a[2] * a[3], area_b = b[2] * b[3];
  if (area_a < 1e-14 || area_b < 1e-14) return 0;
  const double shared = std::min({reference::RotatedIntersection(a, b), area_a, area_b});
  return shared / (op.mode == BoxIouRotated::Mode::kIof ? area_a : area_a + area_b - shared);
}

Status BoxIouRotatedReference(const BoxIouRotated& op, const Context&, Tensor<const double, 2> boxes_a,
                              Tensor<const double, 2> boxes_b, Tensor<double, 2> overlap) {
  const int64_t columns = boxes_b.dim(0);
  for (int64_t i = 0; i < overlap.size(); ++i) {
    overlap[i] = Overlap(op, boxes_a.data() + i / columns * 5, boxes_b.data() + i % columns * 5);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(BoxIouRotated, BoxIouRotatedReference);

Status BoxIouRotatedOfBatchesReference(const BoxIouRotated& op, const Context&, Tensor<const double, 3> boxes_a,
                                       Tensor<const double, 3> boxes_b, Tensor<double, 3> overlap) {
  const int64_t rows = boxes_a.dim(1), columns = boxes_b.dim(1);
  for (int64_t i = 0; i < overlap.size(); ++i) {
    const int64_t row = i / columns, batch = row / rows;
    overlap[i] = Overlap(op, boxes_a.data() + row * 5, boxes_b.data() + (batch * columns + i % columns) * 5);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(BoxIouRotated, BoxIouRotatedOfBatchesReference);

}  // namespace
}  // namespace polyop
