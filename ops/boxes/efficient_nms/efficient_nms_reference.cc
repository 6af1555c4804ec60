// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "ops/boxes/efficient_nms/efficient_nms.h"

namespace polyop {
namespace {

struct Box {
  float corner[4];
};

struct Element {
  float score;
  int64_t box, label;
  Box corners;
};

void OrderCorners(float* corner) {
  if (corner[0] > corner[2]) std::swap(corner[0], corner[2]);
  if (corner[1] > corner[3]) std::swap(corner[1], corner[3]);
}

// In fp32 and not in fp64: the IoU is defined on the output boxes.
Box Decode(const EfficientNms& op, const float* row, const float* anchor) {
  float v[4];
  std::copy_n(row, 4, v);
  const bool center = op.box_coding == EfficientNms::Coding::kCenterSize;
  if (anchor != nullptr && center) {
    v[0] = v[0] * anchor[2] + anchor[0];
    v[1] = v[1] * anchor[3] + anchor[1];
    v[2] = static_cast<float>(std::exp(static_cast<double>(v[2]))) * anchor[2];
    v[3] = static_cast<float>(std::exp(static_cast<double>(v[3]))) * anchor[3];
  } else if (anchor != nullptr) {
    float a[4];
    std::copy_n(anchor, 4, a);
    OrderCorners(a);
    OrderCorners(v);
    for (int i = 0; i < 4; ++i) v[i] += a[i];
  }
  if (!center) return {{v[0], v[1], v[2], v[3]}};
  return {{v[0] - v[2] / 2, v[1] - v[3] / 2, v[0] + v[2] / 2, v[1] + v[3] / 2}};
}

double Iou(Box a, Box b) {
  for (int i = 0; i < 4; ++i) {
    if (!std::isfinite(a.corner[i]) || !std::isfinite(b.corner[i])) return 0;
  }
  OrderCorners(a.corner);
  OrderCorners(b.corner);
  const auto area = [](const float* c) {
    return (static_cast<double>(c[2]) - c[0]) * (static_cast<double>(c[3]) - c[1]);
  };
  const double width = static_cast<double>(std::min(a.corner[2], b.corner[2])) - std::max(a.corner[0], b.corner[0]);
  const double height = static_cast<double>(std::min(a.corner[3], b.corner[3])) - std::max(a.corner[1], b.corner[1]);
  if (width <= 0 || height <= 0) return 0;
  return width * height / (area(a.corner) + area(b.corner) - width * height);
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

template <int kRank>
Status EfficientNmsReference(const EfficientNms& op, const Context&, Tensor<const float, kRank> boxes,
                             Tensor<const float, 3> scores, std::optional<Tensor<const float, 3>> anchors,
                             Tensor<int32_t, 2> num, Tensor<float, 3> out_boxes, Tensor<float, 2> out_scores,
                             Tensor<int32_t, 2> out_classes, std::optional<Tensor<int32_t, 2>> out_indices) {
  const int64_t count = scores.dim(1), classes = count == 0 ? 0 : scores.dim(2), keep = op.max_output_boxes;
  const int64_t box_classes = kRank == 4 ? boxes.dim(2) : 1;
  // With score_activation, the threshold is converted to a logit.
  const double min_score = !op.score_activation        ? static_cast<double>(op.score_threshold)
                           : op.score_threshold == 0   ? -INFINITY
                           : op.score_threshold > 1.0f ? NAN
                                                       : std::log(static_cast<double>(op.score_threshold)) -
                                                             std::log1p(-static_cast<double>(op.score_threshold));
  std::fill_n(out_boxes.data(), out_boxes.size(), 0.0f);
  std::fill_n(out_scores.data(), out_scores.size(), 0.0f);
  std::fill_n(out_classes.data(), out_classes.size(), 0);
  if (out_indices) std::fill_n(out_indices->data(), out_indices->size(), 0);
  for (int64_t n = 0; n < scores.dim(0); ++n) {
    std::vector<Element> elements, kept;
    for (int64_t b = 0; b < count; ++b) {
      for (int64_t c = 0; c < classes; ++c) {
        const float score = scores[(n * count + b) * classes + c];
        if (c == op.background_class || !(static_cast<float>(min_score) <= score)) continue;
        const float* row = boxes.data() + ((n * count + b) * box_classes + (box_classes == 1 ? 0 : c)) * 4;
        const float* anchor = anchors ? anchors->data() + ((anchors->dim(0) == 1 ? 0 : n) * count + b) * 4 : nullptr;
        elements.push_back({score, b, c, Decode(op, row, anchor)});
      }
    }
    std::stable_sort(elements.begin(), elements.end(),
                     [](const Element& l, const Element& r) { return l.score > r.score; });
    for (const Element& e : elements) {
      if (static_cast<int64_t>(kept.size()) == keep) break;
      const bool suppressed = std::any_of(kept.begin(), kept.end(), [&](const Element& k) {
        return (op.class_agnostic || k.label == e.label) &&
               Iou(k.corners, e.corners) >= static_cast<double>(op.iou_threshold);
      });
      if (!suppressed) kept.push_back(e);
    }
    num[n] = static_cast<int32_t>(kept.size());
    for (size_t k = 0; k < kept.size(); ++k) {
      const int64_t at = n * keep + static_cast<int64_t>(k);
      std::copy_n(kept[k].corners.corner, 4, out_boxes.data() + at * 4);
      out_scores[at] = op.score_activation ? static_cast<float>(Sigmoid(kept[k].score)) : kept[k].score;
      out_classes[at] = static_cast<int32_t>(kept[k].label);
      if (out_indices) (*out_indices)[at] = static_cast<int32_t>(kept[k].box);
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(EfficientNms, EfficientNmsReference, 3, 4);

}  // namespace
}  // namespace polyop
