// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/convex_polygons.h"
#include "ops/boxes/nms_quadri/nms_quadri.h"
#include "ops/boxes/suppress_cuda.h"

namespace polyop {
namespace {

Status NmsQuadriCuda(const NmsQuadri& op, const CudaContext& cuda, Tensor<const float, 2> boxes,
                     Tensor<const float, 1> scores, Pending<int64_t, 1> keep) {
  const int64_t count = boxes.dim(0);
  Tensor<int64_t, 1> result;
  int64_t* total = nullptr;
  POLYOP_RETURN_IF_ERROR(keep.AllocateUpperBound(count, &result, &total));
  const float *const rows = boxes.data(), *const score = scores.data(), threshold = op.iou_threshold;
  ConvexPolygon* const polygons = cuda.Allocate<ConvexPolygon>(count);
  POLYOP_RETURN_IF_ERROR(
      ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) { polygons[i] = ConvexPolygon::HullOf<4>(rows + 8 * i); }));
  SortedSets sorted;
  POLYOP_RETURN_IF_ERROR(SortedSets::Sort(
      cuda, 1, count, [=] POLYOP_DEVICE(int64_t, int64_t box) { return score[box]; }, BoxesAbove{op.score_threshold},
      count, &sorted));
  KeptBits kept;
  POLYOP_RETURN_IF_ERROR(Suppress(
      cuda, sorted, count,
      [=] POLYOP_DEVICE(int64_t, int32_t a, int32_t b) { return Overlap(polygons[a], polygons[b], threshold); },
      &kept));
  int64_t* const to = result.data();
  return EmitKept(cuda, sorted, kept, total,
                  [=] POLYOP_DEVICE(int64_t position, int64_t, int64_t box) { to[position] = box; });
}

POLYOP_CUDA_KERNEL(NmsQuadri, NmsQuadriCuda);

}  // namespace
}  // namespace polyop
