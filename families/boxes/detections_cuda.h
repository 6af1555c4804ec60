// Suppression per class and picture with a bounded number of detections, on the GPU: what TensorRT's batched NMS
// plugins do, for upright and rotated boxes alike.
#pragma once

#include <optional>

#include "families/boxes/detection_rule.h"
#include "families/boxes/suppress_cuda.h"

namespace polyop {

/// overlaps(a, b) of boxes numbered as rows of `boxes` [B * N * (1 or C), components]. `dets` has components + 1
/// columns.
template <int kComponents, class Overlaps>
Status SuppressBatchesCuda(const DetectionRule& rule, const CudaContext& cuda, const Tensor<const float, 4>& boxes,
                           const Tensor<const float, 3>& scores, const Tensor<float, 3>& dets,
                           const Tensor<int32_t, 2>& labels, const std::optional<Tensor<int32_t, 2>>& index,
                           const Overlaps& overlaps) {
  const int64_t pictures = boxes.dim(0), count = boxes.dim(1), classes = count == 0 ? 0 : scores.dim(2);
  const int64_t box_classes = boxes.dim(2), keep = labels.dim(1), per_picture = classes * count;
  const int64_t most = rule.topk > 0 ? std::min(rule.topk, count) : count;
  const float *from = scores.data(), *box_data = boxes.data();
  const Divider by_classes(classes), by_count(count), by_keep(keep);
  // The row of 'boxes' that a class of a picture looks at.
  const auto row_of = [=] POLYOP_HD(int64_t picture, int64_t label, int64_t box) {
    return (picture * count + box) * box_classes + (box_classes == 1 ? 0 : label);
  };
  const auto score_of = [=] POLYOP_HD(int64_t set, int64_t box) {
    int64_t label;
    const int64_t picture = by_classes.Split(set, &label);
    return from[(picture * count + box) * classes + label];
  };
  SortedSets sorted;
  KeptBits kept;
  POLYOP_RETURN_IF_ERROR(
      SortedSets::Sort(cuda, pictures * classes, count, score_of, BoxesAbove{rule.score_threshold}, most, &sorted));
  const auto overlaps_in_set = [=] POLYOP_HD(int64_t set, int32_t a, int32_t b) {
    int64_t label;
    const int64_t picture = by_classes.Split(set, &label);
    return overlaps(row_of(picture, label, a), row_of(picture, label, b));
  };
  const int64_t background = rule.background_label_id;
  if (background >= 0 && background < classes) {
    POLYOP_RETURN_IF_ERROR(ForEach(
        cuda, pictures, [=] POLYOP_DEVICE(int64_t picture) { sorted.count[picture * classes + background] = 0; }));
  }
  POLYOP_RETURN_IF_ERROR(Suppress(cuda, sorted, most, overlaps_in_set, &kept));
  // All classes of a picture together: of equal scores the lower class, then the lower box comes first, as they stand.
  const int64_t words = sorted.words();
  const uint64_t* const bits = kept.words;
  SortedSets detections;
  const auto kept_score = [=] POLYOP_HD(int64_t picture, int64_t place) {
    int64_t rank;
    const int64_t set = picture * classes + by_count.Split(place, &rank);
    const bool stays = (bits[set * words + rank / 64] >> (rank % 64) & 1) != 0;
    return stays ? score_of(set, sorted.order[set * count + rank]) : NAN;
  };
  POLYOP_RETURN_IF_ERROR(SortedSets::Sort(cuda, pictures, per_picture, kept_score, BoxesAbove{rule.score_threshold},
                                          per_picture, &detections));
  float* const to_dets = dets.data();
  int32_t *const to_labels = labels.data(), *const to_index = index ? index->data() : nullptr;
  const bool clip = rule.clip_boxes;
  return ForEach(cuda, labels.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t k;
    const int64_t picture = by_keep.Split(i, &k);
    float* const det = to_dets + i * (kComponents + 1);
    if (per_picture == 0 || k >= detections.count[picture]) {
      for (int c = 0; c <= kComponents; ++c) det[c] = 0;
      to_labels[i] = -1;
      if (to_index != nullptr) to_index[i] = -1;
      return;
    }
    int64_t rank;
    const int64_t label = by_count.Split(detections.order[picture * per_picture + k], &rank);
    const int64_t set = picture * classes + label, box = sorted.order[set * count + rank];
    const float* const corners = box_data + row_of(picture, label, box) * kComponents;
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
