// SPDX-License-Identifier: Apache-2.0
// Batched NMS step by step: for reference kernels only.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "ops/boxes/detection_rule.h"

namespace polyop::reference {

/// `iou(a, b)` takes two boxes of `components` numbers.
inline Status SuppressBatches(const DetectionRule& rule, int64_t components, const Tensor<const float, 4>& boxes,
                              const Tensor<const float, 3>& scores, const Tensor<float, 3>& dets,
                              const Tensor<int32_t, 2>& labels, const std::optional<Tensor<int32_t, 2>>& index,
                              const std::function<double(const float*, const float*)>& iou) {
  struct Kept {
    float score;
    int64_t box, label;
  };
  const int64_t count = boxes.dim(1), keep = labels.dim(1);
  // Without boxes the number of classes, which may be huge, does not matter.
  const int64_t classes = count == 0 ? 0 : scores.dim(2);
  std::fill_n(dets.data(), dets.size(), 0.0f);
  std::fill_n(labels.data(), labels.size(), -1);
  if (index) std::fill_n(index->data(), index->size(), -1);
  for (int64_t b = 0; b < boxes.dim(0); ++b) {
    const auto box_at = [&](int64_t box, int64_t label) {
      return boxes.data() + ((b * count + box) * boxes.dim(2) + (boxes.dim(2) == 1 ? 0 : label)) * components;
    };
    const auto by_score = [](const Kept& l, const Kept& r) { return l.score > r.score; };
    std::vector<Kept> all;
    for (int64_t c = 0; c < classes; ++c) {
      std::vector<Kept> candidates, kept;
      for (int64_t i = 0; i < count && c != rule.background_label_id; ++i) {
        const float score = scores[(b * count + i) * classes + c];
        if (score > rule.score_threshold) candidates.push_back({score, i, c});
      }
      std::stable_sort(candidates.begin(), candidates.end(), by_score);
      if (rule.topk > 0 && static_cast<int64_t>(candidates.size()) > rule.topk) {
        candidates.resize(static_cast<size_t>(rule.topk));
      }
      for (const Kept& candidate : candidates) {
        const bool suppressed = std::any_of(kept.begin(), kept.end(), [&](const Kept& k) {
          return iou(box_at(k.box, c), box_at(candidate.box, c)) > static_cast<double>(rule.iou_threshold);
        });
        if (!suppressed) kept.push_back(candidate);
      }
      all.insert(all.end(), kept.begin(), kept.end());
    }
    // Stable: ties are in order of class, then of box.
    std::stable_sort(all.begin(), all.end(), by_score);
    for (int64_t k = 0; k < std::min<int64_t>(keep, static_cast<int64_t>(all.size())); ++k) {
      const Kept& best = all[static_cast<size_t>(k)];
      float* det = dets.data() + (b * keep + k) * (components + 1);
      for (int64_t i = 0; i < components; ++i) {
        const float v = box_at(best.box, best.label)[i];
        det[i] = rule.clip_boxes && i < 4 ? std::min(std::max(v, 0.0f), 1.0f) : v;
      }
      det[components] = best.score;
      labels[b * keep + k] = static_cast<int32_t>(best.label);
      const int64_t offset = boxes.dim(2) == 1 ? 0 : best.label * count;
      if (index) (*index)[b * keep + k] = static_cast<int32_t>(offset + best.box);
    }
  }
  return Status::Ok();
}

}  // namespace polyop::reference
