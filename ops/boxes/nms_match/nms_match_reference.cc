// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/boxes/nms_match/nms_match.h"
#include "ops/boxes/nms_match/nms_match_values.h"

namespace polyop {
namespace {

float IouOfMatch(const float* a, const float* b) {
  const double width = std::fmin(a[2], b[2]) - static_cast<double>(std::fmax(a[0], b[0]));
  const double height = std::fmin(a[3], b[3]) - static_cast<double>(std::fmax(a[1], b[1]));
  for (int i = 0; i < 4; ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) return 0;
  }
  if (!(width > 0) || !(height > 0)) return 0;
  const auto area = [](const float* box) {
    return (static_cast<double>(box[2]) - box[0]) * (static_cast<double>(box[3]) - box[1]);
  };
  const auto iou = static_cast<float>(width * height / (area(a) + area(b) - width * height));
  return iou > 0 ? iou : 0;  // also for NaN, which infinite areas give
}

Status NmsMatchReference(const NmsMatch&, const Context&, Tensor<const float, 3> boxes, Tensor<const float, 3> scores,
                         Tensor<const float, 0> iou_threshold, Tensor<const float, 0> score_threshold,
                         Pending<int64_t, 2> matches) {
  POLYOP_RETURN_IF_ERROR(CheckThresholds(iou_threshold[0], score_threshold[0]));
  const int64_t count = boxes.dim(1), classes = scores.dim(1);
  std::vector<int64_t> rows;
  for (int64_t b = 0; b < boxes.dim(0); ++b) {
    const float* box = boxes.data() + b * count * 4;
    for (int64_t c = 0; c < classes; ++c) {
      const float* score = scores.data() + (b * classes + c) * count;
      std::vector<int64_t> left(static_cast<size_t>(count));
      std::iota(left.begin(), left.end(), int64_t{0});
      const auto end =
          std::stable_partition(left.begin(), left.end(), [&](int64_t i) { return !std::isnan(score[i]); });
      std::stable_sort(left.begin(), end, [&](int64_t l, int64_t r) { return score[l] > score[r]; });
      while (!left.empty()) {
        const int64_t best = left.front();
        std::vector<int64_t> rest;
        for (size_t k = 1; k < left.size(); ++k) {
          if (IouOfMatch(box + 4 * best, box + 4 * left[k]) >= iou_threshold[0]) {
            if (score[best] > score_threshold[0]) rows.insert(rows.end(), {b, c, best, left[k]});
          } else {
            rest.push_back(left[k]);
          }
        }
        left = rest;
      }
    }
  }
  Tensor<int64_t, 2> result;
  POLYOP_RETURN_IF_ERROR(matches.Allocate(static_cast<int64_t>(rows.size()) / 4, &result));
  std::copy(rows.begin(), rows.end(), result.data());
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(NmsMatch, NmsMatchReference);

}  // namespace
}  // namespace polyop
