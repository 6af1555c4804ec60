// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/boxes3d/box3d_overlap_reference.h"
#include "ops/boxes3d/nms3d/nms3d.h"

namespace polyop {
namespace {

Status Nms3dReference(const Nms3d& op, const Context&, Tensor<const double, 2> boxes, Tensor<const double, 1> scores,
                      Pending<int64_t, 1> keep) {
  std::vector<int64_t> order(static_cast<size_t>(scores.dim(0))), kept;
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::isnan(scores[b]) ? !std::isnan(scores[a]) : scores[a] > scores[b];
  });
  for (int64_t i : order) {
    const bool suppressed = std::any_of(kept.begin(), kept.end(), [&](int64_t k) {
      const reference::BevPair pair(boxes.data() + 7 * k, boxes.data() + 7 * i, !op.normal);
      return pair.Iou() > static_cast<double>(op.iou_threshold);
    });
    if (!suppressed) kept.push_back(i);
  }
  Tensor<int64_t, 1> result;
  POLYOP_RETURN_IF_ERROR(keep.Allocate(static_cast<int64_t>(kept.size()), &result));
  std::copy(kept.begin(), kept.end(), result.data());
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(Nms3d, Nms3dReference);

}  // namespace
}  // namespace polyop
