// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "ops/boxes/onnx_nms/onnx_nms.h"

namespace polyop {
namespace {

using BoxCorners = std::array<float, 4>;

BoxCorners Corners(const float* box, bool center_point_box) {
  if (center_point_box) {
    return {box[0] - box[2] / 2, box[1] - box[3] / 2, box[0] + box[2] / 2, box[1] + box[3] / 2};
  }
  BoxCorners corners = {box[0], box[1], box[2], box[3]};
  if (corners[0] > corners[2]) std::swap(corners[0], corners[2]);
  if (corners[1] > corners[3]) std::swap(corners[1], corners[3]);
  return corners;
}

// Computes in float, because the comparison with the threshold depends on the rounding of the quotient.
float IouOfCorners(const BoxCorners& a, const BoxCorners& b) {
  if (std::any_of(a.begin(), a.end(), [](float v) { return std::isnan(v); })) return 0;
  if (std::any_of(b.begin(), b.end(), [](float v) { return std::isnan(v); })) return 0;
  const float width = std::fmin(a[2], b[2]) - std::fmax(a[0], b[0]);
  const float height = std::fmin(a[3], b[3]) - std::fmax(a[1], b[1]);
  const float area_a = (a[2] - a[0]) * (a[3] - a[1]), area_b = (b[2] - b[0]) * (b[3] - b[1]);
  if (!(width > 0 && height > 0 && width * height > 0 && area_a > 0 && area_b > 0)) return 0;
  return width * height / (area_a + area_b - width * height);
}

std::vector<int64_t> Suppress(const OnnxNms& op, const OnnxNmsRule& rule, const float* boxes, const float* scores,
                              int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count)), kept;
  std::iota(order.begin(), order.end(), int64_t{0});
  if (!rule.all) std::erase_if(order, [&](int64_t i) { return !(scores[i] > rule.score_threshold); });
  const auto end = std::stable_partition(order.begin(), order.end(), [&](int64_t i) { return !std::isnan(scores[i]); });
  std::stable_sort(order.begin(), end, [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  for (int64_t i : order) {
    if (static_cast<int64_t>(kept.size()) >= rule.max_boxes) break;
    const BoxCorners box = Corners(boxes + 4 * i, op.center_point_box);
    const bool suppressed = std::any_of(kept.begin(), kept.end(), [&](int64_t k) {
      return IouOfCorners(Corners(boxes + 4 * k, op.center_point_box), box) > rule.iou_threshold;
    });
    if (!suppressed) kept.push_back(i);
  }
  return kept;
}

Status OnnxNmsReference(const OnnxNms& op, const Context&, Tensor<const float, 3> boxes, Tensor<const float, 3> scores,
                        std::optional<Tensor<const int64_t, 0>> max_boxes,
                        std::optional<Tensor<const float, 0>> iou_threshold,
                        std::optional<Tensor<const float, 0>> score_threshold, Pending<int64_t, 2> selected) {
  const OnnxNmsRule rule{max_boxes ? (*max_boxes)[0] : 0, iou_threshold ? (*iou_threshold)[0] : 0.0f, !score_threshold,
                         score_threshold ? (*score_threshold)[0] : 0.0f};
  POLYOP_RETURN_IF_ERROR(rule.Check());
  const int64_t count = boxes.dim(1), classes = scores.dim(1);
  std::vector<int64_t> rows;
  for (int64_t set = 0; count > 0 && set < scores.dim(0) * classes; ++set) {
    for (int64_t k : Suppress(op, rule, boxes.data() + set / classes * count * 4, scores.data() + set * count, count)) {
      rows.insert(rows.end(), {set / classes, set % classes, k});
    }
  }
  Tensor<int64_t, 2> result;
  POLYOP_RETURN_IF_ERROR(selected.Allocate(static_cast<int64_t>(rows.size()) / 3, &result));
  std::copy(rows.begin(), rows.end(), result.data());
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(OnnxNms, OnnxNmsReference);

}  // namespace
}  // namespace polyop
