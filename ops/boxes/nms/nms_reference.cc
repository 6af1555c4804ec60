// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/boxes/nms/nms.h"

namespace polyop {
namespace {

using NmsBox = std::array<float, 4>;

NmsBox ReadBox(const float* box, const Nms& op) {
  if (!op.center_point_box) return {box[0], box[1], box[2], box[3]};
  return {box[0] - box[2] / 2, box[1] - box[3] / 2, box[0] + box[2] / 2, box[1] + box[3] / 2};
}

double Length(double low, double high, int64_t offset) { return high - low + static_cast<double>(offset); }

bool Overlap(const NmsBox& a, const NmsBox& b, const Nms& op) {
  const double width = Length(std::fmax(a[0], b[0]), std::fmin(a[2], b[2]), op.offset);
  const double height = Length(std::fmax(a[1], b[1]), std::fmin(a[3], b[3]), op.offset);
  if (!(width > 0) || !(height > 0)) return false;
  const double area_a = Length(a[0], a[2], op.offset) * Length(a[1], a[3], op.offset);
  const double area_b = Length(b[0], b[2], op.offset) * Length(b[1], b[3], op.offset);
  return width * height > static_cast<double>(op.iou_threshold) * (area_a + area_b - width * height);
}

// Returns the kept boxes among those in `order`, at most `max_boxes` of them.
std::vector<int64_t> Suppress(const Nms& op, const float* boxes, const std::vector<int64_t>& order, int64_t max_boxes) {
  std::vector<int64_t> kept;
  for (int64_t i : order) {
    if (static_cast<int64_t>(kept.size()) == max_boxes) break;
    const bool suppressed = std::any_of(kept.begin(), kept.end(), [&](int64_t k) {
      return Overlap(ReadBox(boxes + 4 * k, op), ReadBox(boxes + 4 * i, op), op);
    });
    if (!suppressed) kept.push_back(i);
  }
  return kept;
}

// Returns indices by descending score. If `all` is set, a threshold of -infinity includes all boxes, with NaN last.
std::vector<int64_t> Order(const float* scores, int64_t count, float threshold, bool all) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (!all || threshold > -std::numeric_limits<float>::infinity()) {
    std::erase_if(order, [&](int64_t i) { return !(scores[i] > threshold); });
  }
  const auto end = std::stable_partition(order.begin(), order.end(), [&](int64_t i) { return !std::isnan(scores[i]); });
  std::stable_sort(order.begin(), end, [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  return order;
}

Status NmsReference(const Nms& op, const Context&, Tensor<const float, 2> boxes, Tensor<const float, 1> scores,
                    Pending<int64_t, 1> keep) {
  const std::vector<int64_t> order = Order(scores.data(), boxes.dim(0), op.score_threshold, true);
  const std::vector<int64_t> kept = Suppress(op, boxes.data(), order, boxes.dim(0));
  Tensor<int64_t, 1> result;
  POLYOP_RETURN_IF_ERROR(keep.Allocate(static_cast<int64_t>(kept.size()), &result));
  std::copy(kept.begin(), kept.end(), result.data());
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(Nms, NmsReference);

Status NmsOfClassesReference(const Nms& op, const Context&, Tensor<const float, 3> boxes, Tensor<const float, 3> scores,
                             Tensor<int32_t, 2> selected) {
  const int64_t count = boxes.dim(1), max_boxes = op.max_output_boxes_per_class;
  int32_t* row = selected.data();
  std::fill_n(row, selected.size(), -1);
  for (int64_t b = 0; b < boxes.dim(0); ++b) {
    for (int64_t c = 0; c < scores.dim(1); ++c) {
      const float* class_scores = scores.data() + (b * scores.dim(1) + c) * count;
      const std::vector<int64_t> order = Order(class_scores, count, op.score_threshold, false);
      for (int64_t k : Suppress(op, boxes.data() + b * count * 4, order, max_boxes == 0 ? count : max_boxes)) {
        *row++ = static_cast<int32_t>(b);
        *row++ = static_cast<int32_t>(c);
        *row++ = static_cast<int32_t>(k);
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(Nms, NmsOfClassesReference);

}  // namespace
}  // namespace polyop
