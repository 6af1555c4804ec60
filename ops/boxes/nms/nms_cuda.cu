// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/boxes_overlap.h"
#include "ops/boxes/nms/nms.h"
#include "ops/boxes/suppress_cuda.h"

namespace polyop {
namespace {

// The overlap rule over boxes [sets / classes, size, 4].
struct Overlaps {
  const float* boxes;
  int64_t size;
  Divider classes;
  bool center_point_box;
  double offset, threshold;

  POLYOP_HD bool operator()(int64_t set, int32_t a, int32_t b) const {
    const float* const from = boxes + classes.Quotient(set) * size * 4;
    float corners_a[4], corners_b[4];
    Read(from + 4 * a, corners_a);
    Read(from + 4 * b, corners_b);
    return BoxOverlap::Of(corners_a, corners_b, offset).More(threshold);
  }
  POLYOP_HD void Read(const float* box, float corners[4]) const {
    for (int k = 0; k < 4; ++k) corners[k] = box[k];
    if (!center_point_box) return;
    for (int k = 0; k < 2; ++k) {
      corners[k] = box[k] - box[k + 2] / 2;
      corners[k + 2] = box[k] + box[k + 2] / 2;
    }
  }
};

Overlaps OverlapsOf(const Nms& op, const float* boxes, int64_t size, int64_t classes) {
  return {boxes, size, Divider(classes), op.center_point_box, static_cast<double>(op.offset), op.iou_threshold};
}

Status NmsCuda(const Nms& op, const CudaContext& cuda, Tensor<const float, 2> boxes, Tensor<const float, 1> scores,
               Pending<int64_t, 1> keep) {
  const int64_t count = boxes.dim(0);
  Tensor<int64_t, 1> result;
  int64_t* total = nullptr;
  POLYOP_RETURN_IF_ERROR(keep.AllocateUpperBound(count, &result, &total));
  const float* const from = scores.data();
  SortedSets sorted;
  KeptBits kept;
  POLYOP_RETURN_IF_ERROR(SortedSets::Sort(
      cuda, 1, count, [=] POLYOP_DEVICE(int64_t, int64_t box) { return from[box]; },
      BoxesAbove{op.score_threshold, !(op.score_threshold > -std::numeric_limits<float>::infinity())}, count, &sorted));
  POLYOP_RETURN_IF_ERROR(Suppress(cuda, sorted, count, OverlapsOf(op, boxes.data(), count, 1), &kept));
  int64_t* const to = result.data();
  return EmitKept(cuda, sorted, kept, total,
                  [=] POLYOP_DEVICE(int64_t position, int64_t, int64_t box) { to[position] = box; });
}

Status NmsOfClassesCuda(const Nms& op, const CudaContext& cuda, Tensor<const float, 3> boxes,
                        Tensor<const float, 3> scores, Tensor<int32_t, 2> selected) {
  const int64_t count = boxes.dim(1), classes = scores.dim(1), sets = boxes.dim(0) * classes;
  const float* const from = scores.data();
  int32_t* const to = selected.data();
  SortedSets sorted;
  KeptBits kept;
  POLYOP_RETURN_IF_ERROR(SortedSets::Sort(
      cuda, sets, count, [=] POLYOP_DEVICE(int64_t set, int64_t box) { return from[set * count + box]; },
      BoxesAbove{op.score_threshold}, count, &sorted));
  POLYOP_RETURN_IF_ERROR(
      Suppress(cuda, sorted, selected.dim(0) / sets, OverlapsOf(op, boxes.data(), count, classes), &kept));
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, selected.size(), [=] POLYOP_DEVICE(int64_t i) { to[i] = -1; }));
  const Divider by_classes(classes);
  return EmitKept(cuda, sorted, kept, nullptr, [=] POLYOP_DEVICE(int64_t position, int64_t set, int64_t box) {
    int64_t label;
    to[3 * position] = static_cast<int32_t>(by_classes.Split(set, &label));
    to[3 * position + 1] = static_cast<int32_t>(label);
    to[3 * position + 2] = static_cast<int32_t>(box);
  });
}

POLYOP_CUDA_KERNEL(Nms, NmsCuda);
POLYOP_CUDA_KERNEL(Nms, NmsOfClassesCuda);

}  // namespace
}  // namespace polyop
