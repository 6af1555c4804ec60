// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/box_iou_quadri/box_iou_quadri.h"
#include "ops/boxes/convex_polygons_reference.h"

namespace polyop {
namespace {

double Overlap(const BoxIouQuadri& op, const double* a, const double* b) {
  return reference::IouOrIof(reference::HullOf(a, 4), reference::HullOf(b, 4), op.mode == BoxIouQuadri::Mode::kIof);
}

Status BoxIouQuadriReference(const BoxIouQuadri& op, const Context&, Tensor<const double, 2> boxes_a,
                             Tensor<const double, 2> boxes_b, Tensor<double, 2> overlap) {
  const int64_t columns = boxes_b.dim(0);
  for (int64_t i = 0; i < overlap.size(); ++i) {
    overlap[i] = Overlap(op, boxes_a.data() + i / columns * 8, boxes_b.data() + i % columns * 8);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(BoxIouQuadri, BoxIouQuadriReference);

Status BoxIouQuadriOfBatchesReference(const BoxIouQuadri& op, const Context&, Tensor<const double, 3> boxes_a,
                                      Tensor<const double, 3> boxes_b, Tensor<double, 3> overlap) {
  const int64_t rows = boxes_a.dim(1), columns = boxes_b.dim(1);
  for (int64_t i = 0; i < overlap.size(); ++i) {
    const int64_t row = i / columns, batch = row / rows;
    overlap[i] = Overlap(op, boxes_a.data() + row * 8, boxes_b.data() + (batch * columns + i % columns) * 8);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(BoxIouQuadri, BoxIouQuadriOfBatchesReference);

}  // namespace
}  // namespace polyop
