// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes3d/box3d_cuda.h"
#include "ops/boxes3d/points_in_boxes_part/points_in_boxes_part.h"

namespace polyop {
namespace {

template <class T>
Status PointsInBoxesPartCuda(const PointsInBoxesPart&, const CudaContext& cuda, Tensor<const T, 3> points,
                             Tensor<const T, 3> boxes, Tensor<int32_t, 2> box) {
  const int64_t count = boxes.dim(1);
  const T* const from = points.data();
  int32_t* const to = box.data();
  const Divider each(points.dim(1));
  Box3d* const prepared = cuda.Allocate<Box3d>(boxes.dim(0) * count);
  POLYOP_RETURN_IF_ERROR(PrepareBoxes(cuda, boxes.data(), boxes.dim(0) * count, prepared));
  return ForEach(cuda, box.size(), [=] POLYOP_DEVICE(int64_t i) {
    const int64_t batch = each.Quotient(i);
    int64_t first = 0;
    while (first < count && !prepared[batch * count + first].Holds(from + 3 * i)) ++first;
    to[i] = static_cast<int32_t>(first < count ? first : -1);
  });
}

POLYOP_CUDA_KERNELS(PointsInBoxesPart, PointsInBoxesPartCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
