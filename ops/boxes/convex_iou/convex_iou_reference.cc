// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/convex_iou/convex_iou.h"
#include "ops/boxes/convex_polygons_reference.h"

namespace polyop {
namespace {

Status ConvexIouReference(const ConvexIou&, const Context&, Tensor<const double, 2> pointsets,
                          Tensor<const double, 2> polygons, Tensor<double, 2> ious) {
  for (int64_t i = 0; i < pointsets.dim(0); ++i) {
    const std::vector<reference::Point> hull = reference::HullOf(pointsets.data() + 18 * i, 9);
    for (int64_t k = 0; k < polygons.dim(0); ++k) {
      ious[i * polygons.dim(0) + k] = reference::IouOrIof(hull, reference::HullOf(polygons.data() + 8 * k, 4), false);
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(ConvexIou, ConvexIouReference);

}  // namespace
}  // namespace polyop
