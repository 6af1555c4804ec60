// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/boxes_overlap.h"
#include "ops/boxes/efficient_nms/coded_boxes.h"
#include "ops/boxes/efficient_nms/efficient_nms.h"
#include "ops/boxes/suppress_cuda.h"

namespace polyop {
namespace {

struct Kept {
  float corners[4];  // ordered: (min x, min y, max x, max y)
  int32_t element, label;
};

// Sorts the elements of each image by score. Then one block per image visits them in chunks of one element per thread:
// each thread tests its element against the kept ones, and the remaining elements are kept or suppressed one after the
// other.
template <class T>
Status SuppressCuda(const EfficientNms& op, const CudaContext& cuda, const T* boxes, int64_t box_classes,
                    Tensor<const T, 3> scores, std::optional<Tensor<const T, 3>> anchors, Tensor<int32_t, 2> num,
                    Tensor<T, 3> out_boxes, Tensor<T, 2> out_scores, Tensor<int32_t, 2> out_classes,
                    std::optional<Tensor<int32_t, 2>> out_indices) {
  const int64_t images = scores.dim(0), count = scores.dim(1), classes = count == 0 ? 0 : scores.dim(2);
  const int64_t elements = count * classes, keep = op.max_output_boxes, max_kept = std::min(keep, elements);
  const CodedBoxes<T> coded{
      boxes,       anchors ? anchors->data() : nullptr, count,
      box_classes, anchors && anchors->dim(0) == 1,     op.box_coding == EfficientNms::Coding::kCenterSize};
  const T* const from = scores.data();
  const float min_score = op.MinScore();
  const int64_t background = op.background_class;
  const auto score_of = [=] POLYOP_DEVICE(int64_t image, int64_t element) {
    return ToFloat(from[image * elements + element]);
  };
  const auto is_candidate = [=] POLYOP_DEVICE(float score, int64_t element) {
    return score >= min_score && (background < 0 || element % classes != background);
  };
  SortedSets sorted;
  POLYOP_RETURN_IF_ERROR(SortedSets::Sort(cuda, images, elements, score_of, is_candidate, elements, &sorted));
  Kept* const kept = cuda.Allocate<Kept>(images * max_kept);
  int32_t* const to_num = num.data();
  const double threshold = op.iou_threshold;
  const bool agnostic = op.class_agnostic;
  const auto suppresses = [=] POLYOP_DEVICE(const Kept& a, const Kept& b) {
    return (agnostic || a.label == b.label) && BoxOverlap::Of(a.corners, b.corners, 0).AtLeast(threshold);
  };
  constexpr int64_t kShared = kThreadsPerBlock + 4 * 16;
  POLYOP_RETURN_IF_ERROR(ForBlocks(cuda, images, kThreadsPerBlock, kShared, [=] POLYOP_DEVICE(Block& block) {
    bool* const alive = block.Shared<bool>(kThreadsPerBlock);
    int* const next = block.Shared<int>(1);          // the first thread whose element is undecided
    int32_t* const rows = block.Shared<int32_t>(1);  // boxes kept
    bool* const found = block.Shared<bool>(1);
    Block::Local<Kept> mine(block);
    const int64_t image = block.index, candidates = elements == 0 ? 0 : sorted.count[image];
    Kept* const of_image = kept + image * max_kept;
    block.ForThreads([&](int t) {
      if (t == 0) *rows = 0;
    });
    for (int64_t first = 0; first < candidates && *rows < max_kept; first += kThreadsPerBlock) {
      block.ForThreads([&](int t) {
        alive[t] = first + t < candidates;
        if (t == 0) *next = 0;
        if (!alive[t]) return;
        Kept& box = mine[t];
        box.element = sorted.order[image * elements + first + t];
        box.label = static_cast<int32_t>(box.element % classes);
        coded.Corners(image, box.element / classes, box.label, box.corners);
        CodedBoxes<T>::InOrder(box.corners);
        for (int32_t k = 0; k < *rows && alive[t]; ++k) alive[t] = !suppresses(of_image[k], box);
      });
      for (;;) {
        block.ForThreads([&](int t) {
          if (t != 0) return;
          while (*next < kThreadsPerBlock && !alive[*next]) ++*next;
          *found = *next < kThreadsPerBlock && *rows < max_kept;
        });
        if (!*found) break;
        block.ForThreads([&](int t) {
          if (t == *next) of_image[*rows] = mine[t];
        });
        block.ForThreads([&](int t) {
          if (t > *next && alive[t]) alive[t] = !suppresses(of_image[*rows], mine[t]);
        });
        block.ForThreads([&](int t) {
          if (t != 0) return;
          ++*next;
          ++*rows;
        });
      }
    }
    block.ForThreads([&](int t) {
      if (t == 0) to_num[image] = *rows;
    });
  }));
  T *const to_boxes = out_boxes.data(), *const to_scores = out_scores.data();
  int32_t *const to_classes = out_classes.data(), *const to_indices = out_indices ? out_indices->data() : nullptr;
  const bool activate = op.score_activation;
  const Divider by_keep(keep);
  return ForEach(cuda, images * keep, [=] POLYOP_DEVICE(int64_t i) {
    int64_t k;
    const int64_t image = by_keep.Split(i, &k);
    const bool is_kept = k < to_num[image];
    float corners[4] = {0, 0, 0, 0}, score = 0;
    int32_t label = 0, box = 0;
    if (is_kept) {
      const int32_t element = kept[image * max_kept + k].element;
      label = kept[image * max_kept + k].label;
      box = static_cast<int32_t>(element / classes);
      coded.Corners(image, box, label, corners);
      score = score_of(image, element);
      if (activate) score = static_cast<float>(1 / (1 + exp(-static_cast<double>(score))));
    }
    for (int c = 0; c < 4; ++c) to_boxes[4 * i + c] = FromFloat<T>(corners[c]);
    to_scores[i] = FromFloat<T>(score);
    to_classes[i] = label;
    if (to_indices != nullptr) to_indices[i] = box;
  });
}

// boxes [N, B, 4]: one row for all classes. EfficientNmsCuda4 takes [N, B, 1 or C, 4].
template <class T>
Status EfficientNmsCuda3(const EfficientNms& op, const CudaContext& cuda, Tensor<const T, 3> boxes,
                         Tensor<const T, 3> scores, std::optional<Tensor<const T, 3>> anchors, Tensor<int32_t, 2> num,
                         Tensor<T, 3> out_boxes, Tensor<T, 2> out_scores, Tensor<int32_t, 2> out_classes,
                         std::optional<Tensor<int32_t, 2>> out_indices) {
  return SuppressCuda(op, cuda, boxes.data(), 1, scores, anchors, num, out_boxes, out_scores, out_classes, out_indices);
}
template <class T>
Status EfficientNmsCuda4(const EfficientNms& op, const CudaContext& cuda, Tensor<const T, 4> boxes,
                         Tensor<const T, 3> scores, std::optional<Tensor<const T, 3>> anchors, Tensor<int32_t, 2> num,
                         Tensor<T, 3> out_boxes, Tensor<T, 2> out_scores, Tensor<int32_t, 2> out_classes,
                         std::optional<Tensor<int32_t, 2>> out_indices) {
  return SuppressCuda(op, cuda, boxes.data(), boxes.dim(2), scores, anchors, num, out_boxes, out_scores, out_classes,
                      out_indices);
}

POLYOP_CUDA_KERNELS(EfficientNms, EfficientNmsCuda3, float, Half, BFloat16);
POLYOP_CUDA_KERNELS(EfficientNms, EfficientNmsCuda4, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
