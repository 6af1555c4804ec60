// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/boxes/soft_nms/soft_nms.h"

namespace polyop {
namespace {

double Iou(const float* a, const float* b, double offset) {
  for (int i = 0; i < 4; ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) return 0;
  }
  const double width = std::fmin(a[2], b[2]) - static_cast<double>(std::fmax(a[0], b[0])) + offset;
  const double height = std::fmin(a[3], b[3]) - static_cast<double>(std::fmax(a[1], b[1])) + offset;
  if (!(width > 0 && height > 0)) return 0;
  const auto area = [offset](const float* r) {
    return (static_cast<double>(r[2]) - r[0] + offset) * (static_cast<double>(r[3]) - r[1] + offset);
  };
  const auto iou = static_cast<float>(width * height / (area(a) + area(b) - width * height));
  return iou > 0 ? static_cast<double>(iou) : 0;  // also for NaN, which infinite areas give
}

double Weight(const SoftNms& op, double iou) {
  switch (op.method) {
    case SoftNms::Method::kNaive: return iou >= op.iou_threshold ? 0 : 1;
    case SoftNms::Method::kLinear: return iou >= op.iou_threshold ? 1 - iou : 1;
    case SoftNms::Method::kGaussian: return std::exp(-iou * iou / op.sigma);
  }
  return 1;
}

Status SoftNmsReference(const SoftNms& op, const Context&, Tensor<const float, 2> boxes, Tensor<const float, 1> scores,
                        Pending<float, 2> dets, Pending<int64_t, 1> keep) {
  struct Box {
    int64_t index;
    float score;
  };
  std::vector<Box> remaining, selected;
  for (int64_t i = 0; i < boxes.dim(0); ++i) {
    if (!std::isnan(scores[i])) remaining.push_back({i, scores[i]});
  }
  while (!remaining.empty()) {
    size_t best = 0;
    for (size_t i = 1; i < remaining.size(); ++i) {
      if (remaining[i].score > remaining[best].score) best = i;
    }
    const Box box = remaining[best];
    selected.push_back(box);
    remaining.erase(remaining.begin() + static_cast<std::ptrdiff_t>(best));
    std::vector<Box> next;
    for (Box other : remaining) {
      const double weight =
          Weight(op, Iou(boxes.data() + 4 * box.index, boxes.data() + 4 * other.index, static_cast<double>(op.offset)));
      other.score = weight < std::ldexp(1, -126) ? 0 : static_cast<float>(other.score * weight);
      if (!(other.score < op.min_score)) next.push_back(other);
    }
    remaining = next;
  }
  Tensor<float, 2> out;
  Tensor<int64_t, 1> indices;
  POLYOP_RETURN_IF_ERROR(dets.Allocate(static_cast<int64_t>(selected.size()), &out));
  POLYOP_RETURN_IF_ERROR(keep.Allocate(static_cast<int64_t>(selected.size()), &indices));
  for (size_t i = 0; i < selected.size(); ++i) {
    for (size_t k = 0; k < 4; ++k)
      out[static_cast<int64_t>(5 * i + k)] = boxes[4 * selected[i].index + static_cast<int64_t>(k)];
    out[static_cast<int64_t>(5 * i + 4)] = selected[i].score;
    indices[static_cast<int64_t>(i)] = selected[i].index;
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(SoftNms, SoftNmsReference);

}  // namespace
}  // namespace polyop
