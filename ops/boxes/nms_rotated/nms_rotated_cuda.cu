// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/nms_rotated/nms_rotated.h"
#include "ops/boxes/rotated_overlaps_cuda.h"
#include "ops/boxes/suppress_cuda.h"

namespace polyop {
namespace {

// Sorts and suppresses the boxes of `classes` sets of scores for each of `images` sets of boxes.
Status SuppressRotated(const NmsRotated& op, const CudaContext& cuda, const float* boxes, const float* scores,
                       int64_t images, int64_t classes, int64_t count, SortedSets* sorted, KeptBits* kept) {
  RotatedOverlaps rule;
  POLYOP_RETURN_IF_ERROR(RotatedOverlaps::Prepare(cuda, boxes, images * count, op.iou_threshold, &rule));
  POLYOP_RETURN_IF_ERROR(SortedSets::Sort(
      cuda, images * classes, count, [=] POLYOP_DEVICE(int64_t set, int64_t box) { return scores[set * count + box]; },
      BoxesAbove{op.score_threshold}, count, sorted));
  const Divider by_classes(classes);
  return Suppress(
      cuda, *sorted, count,
      [=] POLYOP_DEVICE(int64_t set, int32_t a, int32_t b) {
        const int64_t first = by_classes.Quotient(set) * count;
        return rule(first + a, first + b);
      },
      kept);
}

Status NmsRotatedCuda(const NmsRotated& op, const CudaContext& cuda, Tensor<const float, 2> boxes,
                      Tensor<const float, 1> scores, Pending<int64_t, 1> keep) {
  Tensor<int64_t, 1> result;
  int64_t* total = nullptr;
  POLYOP_RETURN_IF_ERROR(keep.AllocateUpperBound(boxes.dim(0), &result, &total));
  SortedSets sorted;
  KeptBits kept;
  POLYOP_RETURN_IF_ERROR(SuppressRotated(op, cuda, boxes.data(), scores.data(), 1, 1, boxes.dim(0), &sorted, &kept));
  int64_t* const to = result.data();
  return EmitKept(cuda, sorted, kept, total,
                  [=] POLYOP_DEVICE(int64_t position, int64_t, int64_t box) { to[position] = box; });
}

Status NmsRotatedOfClassesCuda(const NmsRotated& op, const CudaContext& cuda, Tensor<const float, 3> boxes,
                               Tensor<const float, 3> scores, Pending<int64_t, 2> keep) {
  const int64_t images = boxes.dim(0), classes = scores.dim(1);
  Tensor<int64_t, 2> result;
  int64_t* total = nullptr;
  POLYOP_RETURN_IF_ERROR(keep.AllocateUpperBound(scores.size(), &result, &total));
  SortedSets sorted;
  KeptBits kept;
  POLYOP_RETURN_IF_ERROR(
      SuppressRotated(op, cuda, boxes.data(), scores.data(), images, classes, boxes.dim(1), &sorted, &kept));
  int64_t* const to = result.data();
  const Divider by_classes(classes);
  return EmitKept(cuda, sorted, kept, total, [=] POLYOP_DEVICE(int64_t position, int64_t set, int64_t box) {
    to[3 * position] = by_classes.Split(set, &to[3 * position + 1]);
    to[3 * position + 2] = box;
  });
}

POLYOP_CUDA_KERNEL(NmsRotated, NmsRotatedCuda);
POLYOP_CUDA_KERNEL(NmsRotated, NmsRotatedOfClassesCuda);

}  // namespace
}  // namespace polyop
