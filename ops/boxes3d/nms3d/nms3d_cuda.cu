// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/rotated_overlaps_cuda.h"
#include "ops/boxes/suppress_cuda.h"
#include "ops/boxes3d/nms3d/nms3d.h"

namespace polyop {
namespace {

template <class T>
Status Nms3dCuda(const Nms3d& op, const CudaContext& cuda, Tensor<const T, 2> boxes, Tensor<const T, 1> scores,
                 Pending<int64_t, 1> keep) {
  const int64_t count = scores.dim(0);
  const bool rotated = !op.normal;
  const T *const rows = boxes.data(), *const from = scores.data();
  Tensor<int64_t, 1> result;
  int64_t* total = nullptr;
  POLYOP_RETURN_IF_ERROR(keep.AllocateUpperBound(count, &result, &total));
  RotatedOverlaps rule;
  POLYOP_RETURN_IF_ERROR(RotatedOverlaps::Prepare(
      cuda, count, [=] POLYOP_DEVICE(int64_t i) { return BevBox(rows + 7 * i, rotated); }, op.Rule(), &rule));
  SortedSets sorted;
  KeptBits kept;
  POLYOP_RETURN_IF_ERROR(SortedSets::Sort(
      cuda, 1, count, [=] POLYOP_DEVICE(int64_t, int64_t box) { return ToFloat(from[box]); }, BoxesAbove{0, true},
      count, &sorted));
  POLYOP_RETURN_IF_ERROR(
      Suppress(cuda, sorted, count, [=] POLYOP_DEVICE(int64_t, int32_t a, int32_t b) { return rule(a, b); }, &kept));
  int64_t* const to = result.data();
  return EmitKept(cuda, sorted, kept, total,
                  [=] POLYOP_DEVICE(int64_t position, int64_t, int64_t box) { to[position] = box; });
}

POLYOP_CUDA_KERNELS(Nms3d, Nms3dCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
