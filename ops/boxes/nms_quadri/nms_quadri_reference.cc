// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include "ops/boxes/convex_polygons_reference.h"
#include "ops/boxes/nms_quadri/nms_quadri.h"

namespace polyop {
namespace {

Status NmsQuadriReference(const NmsQuadri& op, const Context&, Tensor<const float, 2> boxes,
                          Tensor<const float, 1> scores, Pending<int64_t, 1> keep) {
  std::vector<std::vector<reference::Point>> polygons;
  for (int64_t i = 0; i < boxes.dim(0); ++i) {
    const std::vector<double> row(boxes.data() + 8 * i, boxes.data() + 8 * (i + 1));
    polygons.push_back(reference::HullOf(row.data(), 4));
  }
  std::vector<int64_t> order(polygons.size()), kept;
  std::iota(order.begin(), order.end(), int64_t{0});
  std::erase_if(order, [&](int64_t i) { return !(scores[i] > op.score_threshold); });
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  for (int64_t i : order) {
    const bool suppressed = std::any_of(kept.begin(), kept.end(), [&](int64_t k) {
      const double iou = reference::IouOrIof(polygons[static_cast<size_t>(k)], polygons[static_cast<size_t>(i)], false);
      return iou > static_cast<double>(op.iou_threshold);
    });
    if (!suppressed) kept.push_back(i);
  }
  Tensor<int64_t, 1> result;
  POLYOP_RETURN_IF_ERROR(keep.Allocate(static_cast<int64_t>(kept.size()), &result));
  std::copy(kept.begin(), kept.end(), result.data());
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(NmsQuadri, NmsQuadriReference);

}  // namespace
}  // namespace polyop
