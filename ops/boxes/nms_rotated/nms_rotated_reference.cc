// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include "ops/boxes/nms_rotated/nms_rotated.h"
#include "ops/boxes/rotated_boxes_reference.h"

namespace polyop {
namespace {

std::vector<int64_t> Suppress(const NmsRotated& op, const float* boxes, const float* scores, int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count)), kept;
  std::iota(order.begin(), order.end(), int64_t{0});
  std::erase_if(order, [&](int64_t i) { return !(scores[i] > op.score_threshold); });
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  for (int64_t i : order) {
    const bool suppressed = std::any_of(kept.begin(), kept.end(), [&](int64_t k) {
      return reference::RotatedIou(boxes + 5 * k, boxes + 5 * i) > static_cast<double>(op.iou_threshold);
    });
    if (!suppressed) kept.push_back(i);
  }
  return kept;
}

Status NmsRotatedReference(const NmsRotated& op, const Context&, Tensor<const float, 2> boxes,
                           Tensor<const float, 1> scores, Pending<int64_t, 1> keep) {
  const std::vector<int64_t> kept = Suppress(op, boxes.data(), scores.data(), boxes.dim(0));
  Tensor<int64_t, 1> result;
  POLYOP_RETURN_IF_ERROR(keep.Allocate(static_cast<int64_t>(kept.size()), &result));
  std::copy(kept.begin(), kept.end(), result.data());
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(NmsRotated, NmsRotatedReference);

Status NmsRotatedOfClassesReference(const NmsRotated& op, const Context&, Tensor<const float, 3> boxes,
                                    Tensor<const float, 3> scores, Pending<int64_t, 2> keep) {
  const int64_t count = boxes.dim(1), classes = scores.dim(1);
  std::vector<int64_t> rows;
  for (int64_t b = 0; b < boxes.dim(0); ++b) {
    for (int64_t c = 0; c < classes; ++c) {
      const float* class_scores = scores.data() + (b * classes + c) * count;
      for (int64_t k : Suppress(op, boxes.data() + b * count * 5, class_scores, count))
        rows.insert(rows.end(), {b, c, k});
    }
  }
  Tensor<int64_t, 2> result;
  POLYOP_RETURN_IF_ERROR(keep.Allocate(static_cast<int64_t>(rows.size()) / 3, &result));
  std::copy(rows.begin(), rows.end(), result.data());
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(NmsRotated, NmsRotatedOfClassesReference);

}  // namespace
}  // namespace polyop
