// SPDX-License-Identifier: Apache-2.0
// Batched NMS as in TensorRT's plugins: suppression per class and image with a bounded number of detections, for
// upright and rotated boxes. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_BOXES_DETECTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_BOXES_DETECTIONS_INL_H_
#undef POLYOP_OPS_BOXES_DETECTIONS_INL_H_
#else
#define POLYOP_OPS_BOXES_DETECTIONS_INL_H_
#endif

#include <algorithm>
#include <optional>

#include "core/context.h"
#include "kernels/cpu/item_groups.h"
#include "ops/boxes/detection_rule.h"
#include "ops/boxes/suppression-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// A candidate.
struct Detection {
  float score;
  int32_t box;
  int32_t label;
};

/// Orders by descending score, ties by class, then by box.
inline bool Better(const Detection& a, const Detection& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.label != b.label ? a.label < b.label : a.box < b.box;
}

/// The boxes whose score passes the threshold, for each of kClasses classes.
struct Candidates {
  static constexpr int64_t kClasses = 16;
  Detection* list;  // room for `count` detections of each class
  int64_t count;
  int64_t found[kClasses] = {};

  Detection* Of(int64_t c) const { return list + c * count; }

  /// Collects the boxes above `threshold`. `scores` points to the group's first class in row 0; rows are `stride`
  /// apart. Requires: classes <= kClasses.
  void Collect(const float* scores, int64_t stride, int64_t first_class, int64_t classes, float threshold) {
    const hn::CappedTag<float, kClasses> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto minimum = hn::Set(d, threshold);
    std::fill_n(found, kClasses, 0);
    for (int64_t row = 0; row < count; ++row) {
      const float* const at = scores + row * stride;
      for (int64_t c = 0; c < classes; c += lanes) {
        const size_t width = static_cast<size_t>(std::min(lanes, classes - c));
        const auto passes = hn::And(hn::Gt(hn::LoadN(d, at + c, width), minimum), hn::FirstN(d, width));
        if (hn::AllFalse(d, passes)) continue;
        for (int64_t lane = c; lane < c + static_cast<int64_t>(width); ++lane) {
          if (!(at[lane] > threshold)) continue;
          Of(lane)[found[lane]++] = {at[lane], static_cast<int32_t>(row), static_cast<int32_t>(first_class + lane)};
        }
      }
    }
  }
};

/// Boxes is UprightBoxes or RotatedBoxes; `make(memory, capacity)` returns one. `dets` has kComponents + 1 columns.
template <class Boxes, class Make>
Status SuppressBatches(const DetectionRule& rule, const Context& context, Tensor<const float, 4> boxes,
                       Tensor<const float, 3> scores, Tensor<float, 3> dets, Tensor<int32_t, 2> labels,
                       const std::optional<Tensor<int32_t, 2>>& index, const Make& make) {
  constexpr int64_t kWidth = Boxes::kComponents, kGroup = Candidates::kClasses;
  const int64_t images = boxes.dim(0), count = boxes.dim(1);
  // Without boxes the number of classes, which may be huge, does not matter.
  const int64_t classes = count == 0 ? 0 : scores.dim(2);
  const int64_t box_classes = boxes.dim(2), keep = labels.dim(1);
  const int64_t max_kept = rule.topk > 0 ? std::min(rule.topk, count) : count;
  const int64_t groups = (classes + kGroup - 1) / kGroup;
  const ItemGroups in_turn(images, static_cast<double>(classes) * static_cast<double>(max_kept) * sizeof(Detection));
  const int64_t grain = GrainFor(20.0 * static_cast<double>(count));
  const int64_t bytes = (Boxes::BytesFor(max_kept) + 63) / 64 * 64;
  const int64_t candidate_bytes = kGroup * count * static_cast<int64_t>(sizeof(Detection));
  const Scratch<Detection> kept = context.Allocate<Detection>(in_turn.at_once() * classes * max_kept);
  const Scratch<int64_t> num_kept = context.Allocate<int64_t>(in_turn.at_once() * classes);
  bool fits = kept && num_kept;
  in_turn.ForEach([&](int64_t from, int64_t some) {
    const auto suppress = [&](char* memory, int64_t begin, int64_t end) {
      Candidates group{reinterpret_cast<Detection*>(memory + bytes), count};
      const Boxes sorted = make(memory, max_kept);
      for (int64_t item = begin; item < end; ++item) {
        const int64_t slot = item / groups, image = from + slot;
        const int64_t first = item % groups * kGroup, width = std::min(kGroup, classes - first);
        group.Collect(scores.data() + image * count * classes + first, classes, first, width, rule.score_threshold);
        for (int64_t c = 0; c < width; ++c) {
          const int64_t label = first + c, set = slot * classes + label;
          Detection* const mine = group.Of(c);
          const int64_t taking_part = label == rule.background_label_id ? 0 : std::min(max_kept, group.found[c]);
          std::partial_sort(mine, mine + taking_part, mine + group.found[c], Better);
          for (int64_t i = 0; i < taking_part; ++i) {
            const int64_t row = (image * count + mine[i].box) * box_classes + (box_classes == 1 ? 0 : label);
            sorted.Set(i, boxes.data() + row * kWidth);
          }
          num_kept[set] = SuppressGreedily(sorted, taking_part, max_kept, some * classes == 1 ? &context : nullptr);
          for (int64_t k = 0; k < num_kept[set]; ++k) kept[set * max_kept + k] = mine[sorted.kept_index[k]];
        }
      }
    };
    fits = fits && context.ParallelForWithScratch<char>(some * groups, grain, bytes + candidate_bytes, suppress);
    if (!fits) return;
    context.ParallelFor(some, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        const int64_t image = from + slot;
        // Compacts the detections that the classes kept, then finds the best of them.
        Detection* const all = kept.data() + slot * classes * max_kept;
        int64_t total = 0;
        for (int64_t c = 0; c < classes; ++c) {
          const int64_t n = num_kept[slot * classes + c];
          std::copy_n(all + c * max_kept, n, all + total);
          total += n;
        }
        const int64_t rows = std::min(keep, total);
        std::partial_sort(all, all + rows, all + total, Better);
        for (int64_t k = 0; k < keep; ++k) {
          float* const det = dets.data() + (image * keep + k) * (kWidth + 1);
          labels[image * keep + k] = k < rows ? all[k].label : -1;
          if (k >= rows) {
            std::fill_n(det, kWidth + 1, 0.0f);
            if (index) (*index)[image * keep + k] = -1;
            continue;
          }
          const int64_t label = box_classes == 1 ? 0 : all[k].label;
          const float* const box = boxes.data() + ((image * count + all[k].box) * box_classes + label) * kWidth;
          for (int64_t i = 0; i < kWidth; ++i) {
            det[i] = rule.clip_boxes && i < 4 ? std::min(std::max(box[i], 0.0f), 1.0f) : box[i];
          }
          det[kWidth] = all[k].score;
          if (index) (*index)[image * keep + k] = static_cast<int32_t>(label * count + all[k].box);
        }
      }
    });
  });
  if (fits) return Status::Ok();
  return Internal("out of memory: scratch for 'scores' of shape ", ToString(scores.shape()));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
