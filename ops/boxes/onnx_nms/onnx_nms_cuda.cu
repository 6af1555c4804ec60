// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/boxes_overlap.h"
#include "ops/boxes/onnx_nms/onnx_nms.h"
#include "ops/boxes/suppress_cuda.h"

namespace polyop {
namespace {

template <class T>
const T* DataOf(const std::optional<Tensor<const T, 0>>& scalar) {
  return scalar ? scalar->data() : nullptr;
}

// The thresholds stay on the device. With an iou_threshold outside [0, 1], which is an error on the CPU, no box is
// suppressed.
Status OnnxNmsCuda(const OnnxNms& op, const CudaContext& cuda, Tensor<const float, 3> boxes,
                   Tensor<const float, 3> scores, std::optional<Tensor<const int64_t, 0>> max_boxes,
                   std::optional<Tensor<const float, 0>> iou_threshold,
                   std::optional<Tensor<const float, 0>> score_threshold, Pending<int64_t, 2> selected) {
  const int64_t count = boxes.dim(1), classes = scores.dim(1), sets = count == 0 ? 0 : scores.dim(0) * classes;
  Tensor<int64_t, 2> result;
  int64_t* total = nullptr;
  POLYOP_RETURN_IF_ERROR(selected.AllocateUpperBound(scores.size(), &result, &total));
  const float *from = scores.data(), *box_data = boxes.data(), *iou = DataOf(iou_threshold),
              *min_score = DataOf(score_threshold);
  const int64_t* const limit = DataOf(max_boxes);
  const bool center_point_box = op.center_point_box;
  SortedSets sorted;
  KeptBits kept;
  // Scores at or below the threshold become NaN, so they are sorted last.
  POLYOP_RETURN_IF_ERROR(SortedSets::Sort(
      cuda, sets, count,
      [=] POLYOP_DEVICE(int64_t set, int64_t box) {
        const float score = from[set * count + box];
        return min_score == nullptr || score > *min_score ? score : NAN;
      },
      BoxesAbove{0, true}, count, &sorted));
  const Divider by_classes(classes);
  POLYOP_RETURN_IF_ERROR(Suppress(
      cuda, sorted, count,
      [=] POLYOP_DEVICE(int64_t set, int32_t a, int32_t b) {
        const float threshold = iou != nullptr ? *iou : 0;
        const float* const image_boxes = box_data + by_classes.Quotient(set) * count * 4;
        float corners_a[4], corners_b[4];
        OrderedCorners(image_boxes + 4 * a, center_point_box, corners_a);
        OrderedCorners(image_boxes + 4 * b, center_point_box, corners_b);
        return threshold >= 0 && OverlapsInFloat(corners_a, corners_b, threshold);
      },
      &kept));
  // Keeps only the first `limit` boxes above the threshold.
  const int64_t words = sorted.words();
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, sets, [=] POLYOP_DEVICE(int64_t set) {
    int64_t left = limit != nullptr ? *limit : 0;
    for (int64_t rank = 0; rank < count; ++rank) {
      uint64_t& word = kept.words[set * words + rank / 64];
      const uint64_t bit = uint64_t{1} << (rank % 64);
      if ((word & bit) == 0) continue;
      const float score = from[set * count + sorted.order[set * count + rank]];
      if (left <= 0 || (min_score != nullptr && !(score > *min_score))) {
        word &= ~bit;
      } else {
        --left;
      }
    }
  }));
  int64_t* const to = result.data();
  return EmitKept(cuda, sorted, kept, total, [=] POLYOP_DEVICE(int64_t position, int64_t set, int64_t box) {
    to[3 * position] = by_classes.Split(set, &to[3 * position + 1]);
    to[3 * position + 2] = box;
  });
}

POLYOP_CUDA_KERNEL(OnnxNms, OnnxNmsCuda);

}  // namespace
}  // namespace polyop
