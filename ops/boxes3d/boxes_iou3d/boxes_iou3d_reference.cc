// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes3d/box3d_overlap_reference.h"
#include "ops/boxes3d/boxes_iou3d/boxes_iou3d.h"

namespace polyop {
namespace {

Status BoxesIou3dReference(const BoxesIou3d& op, const Context&, Tensor<const double, 2> boxes_a,
                           Tensor<const double, 2> boxes_b, Tensor<double, 2> overlap) {
  for (int64_t i = 0; i < boxes_a.dim(0); ++i) {
    for (int64_t k = 0; k < boxes_b.dim(0); ++k) {
      const double *a = boxes_a.data() + 7 * i, *b = boxes_b.data() + 7 * k;
      double& to = overlap[i * boxes_b.dim(0) + k];
      switch (op.mode) {
        case BoxesIou3d::Mode::kIou3d: to = reference::Iou3d(a, b); break;
        case BoxesIou3d::Mode::kOverlapBev: to = reference::BevPair(a, b, true).shared; break;
        case BoxesIou3d::Mode::kIouBev: to = reference::BevPair(a, b, true).Iou(); break;
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(BoxesIou3d, BoxesIou3dReference);

}  // namespace
}  // namespace polyop
