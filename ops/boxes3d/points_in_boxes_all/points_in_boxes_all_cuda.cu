// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes3d/box3d_cuda.h"
#include "ops/boxes3d/points_in_boxes_all/points_in_boxes_all.h"

namespace polyop {
namespace {

template <class T>
Status PointsInBoxesAllCuda(const PointsInBoxesAll&, const CudaContext& cuda, Tensor<const T, 3> points,
                            Tensor<const T, 3> boxes, Tensor<int32_t, 3> inside) {
  const int64_t count = boxes.dim(1);
  const T* const from = points.data();
  int32_t* const to = inside.data();
  const Divider each(points.dim(1)), by_boxes(count);
  Box3d* const prepared = cuda.Allocate<Box3d>(boxes.dim(0) * count);
  POLYOP_RETURN_IF_ERROR(PrepareBoxes(cuda, boxes.data(), boxes.dim(0) * count, prepared));
  return ForEach(cuda, inside.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t k;
    const int64_t point = by_boxes.Split(i, &k), batch = each.Quotient(point);
    to[i] = prepared[batch * count + k].Holds(from + 3 * point);
  });
}

POLYOP_CUDA_KERNELS(PointsInBoxesAll, PointsInBoxesAllCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
