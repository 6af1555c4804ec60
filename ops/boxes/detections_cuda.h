// SPDX-License-Identifier: Apache-2.0
// Batched NMS as in TensorRT's plugins, on the GPU: suppression per class and image with a bounded number of
// detections, for upright and rotated boxes.
#pragma once

#include <optional>

#include "ops/boxes/detection_rule.h"
#include "ops/boxes/suppress_cuda.h"

namespace polyop {

/// overlaps(a, b) takes indices of rows of `boxes` [B * N * (1 or C), components]. `dets` has components + 1 columns.
template <int kComponents, class Overlaps>
Status SuppressBatchesCuda(const DetectionRule& rule, const CudaContext& cuda, const Tensor<const float, 4>& boxes,
                           const Tensor<const float, 3>& scores, const Tensor<float, 3>& dets,
                           const Tensor<int32_t, 2>& labels, const std::optional<Tensor<int32_t, 2>>& index,
                           const Overlaps& overlaps) {
  const int64_t images = boxes.dim(0), count = boxes.dim(1), classes = count == 0 ? 0 : scores.dim(2);
  const int64_t box_classes = boxes.dim(2), keep = labels.dim(1), per_image = classes * count;
  const int64_t max_kept = rule.topk > 0 ? std::min(rule.topk, count) : count;
  const float *from = scores.data(), *box_data = boxes.data();
  const Divider by_classes(classes), by_count(count), by_keep(keep);
  // The row of 'boxes' that a class of an image uses.
  const auto row_of = [=] POLYOP_DEVICE(int64_t image, int64_t label, int64_t box) {
    return (image * count + box) * box_classes + (box_classes == 1 ? 0 : label);
  };
  const auto score_of = [=] POLYOP_DEVICE(int64_t set, int64_t box) {
    int64_t label;
    const int64_t image = by_classes.Split(set, &label);
    return from[(image * count + box) * classes + label];
  };
  SortedSets sorted;
  KeptBits kept;
  POLYOP_RETURN_IF_ERROR(
      SortedSets::Sort(cuda, images * classes, count, score_of, BoxesAbove{rule.score_threshold}, max_kept, &sorted));
  const auto overlaps_in_set = [=] POLYOP_DEVICE(int64_t set, int32_t a, int32_t b) {
    int64_t label;
    const int64_t image = by_classes.Split(set, &label);
    return overlaps(row_of(image, label, a), row_of(image, label, b));
  };
  const int64_t background = rule.background_label_id;
  if (background >= 0 && background < classes) {
    POLYOP_RETURN_IF_ERROR(
        ForEach(cuda, images, [=] POLYOP_DEVICE(int64_t image) { sorted.count[image * classes + background] = 0; }));
  }
  POLYOP_RETURN_IF_ERROR(Suppress(cuda, sorted, max_kept, overlaps_in_set, &kept));
  // All classes of an image together. They are in order of class and box already, so that a stable sort breaks ties.
  const int64_t words = sorted.words();
  const uint64_t* const bits = kept.words;
  SortedSets detections;
  const auto kept_score = [=] POLYOP_DEVICE(int64_t image, int64_t position) {
    int64_t rank;
    const int64_t set = image * classes + by_count.Split(position, &rank);
    const bool is_kept = (bits[set * words + rank / 64] >> (rank % 64) & 1) != 0;
    return is_kept ? score_of(set, sorted.order[set * count + rank]) : NAN;
  };
  POLYOP_RETURN_IF_ERROR(
      SortedSets::Sort(cuda, images, per_image, kept_score, BoxesAbove{rule.score_threshold}, per_image, &detections));
  float* const to_dets = dets.data();
  int32_t *const to_labels = labels.data(), *const to_index = index ? index->data() : nullptr;
  const bool clip = rule.clip_boxes;
  return ForEach(cuda, labels.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t k;
    const int64_t image = by_keep.Split(i, &k);
    float* const det = to_dets + i * (kComponents + 1);
    if (per_image == 0 || k >= detections.count[image]) {
      for (int c = 0; c <= kComponents; ++c) det[c] = 0;
      to_labels[i] = -1;
      if (to_index != nullptr) to_index[i] = -1;
      return;
    }
    int64_t rank;
    const int64_t label = by_count.Split(detections.order[image * per_image + k], &rank);
    const int64_t set = image * classes + label, box = sorted.order[set * count + rank];
    const float* const corners = box_data + row_of(image, label, box) * kComponents;
    for (int c = 0; c < kComponents; ++c) {
      const float v = corners[c];
      det[c] = clip && c < 4 ? (v < 0 ? 0 : v > 1 ? 1 : v) : v;
    }
    det[kComponents] = score_of(set, box);
    to_labels[i] = static_cast<int32_t>(label);
    if (to_index != nullptr) to_index[i] = static_cast<int32_t>((box_classes == 1 ? 0 : label * count) + box);
  });
}

}  // namespace polyop
