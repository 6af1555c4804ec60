// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/boxes/diff_iou_rotated/diff_iou_rotated_backward.h"
#include "ops/boxes/diff_iou_rotated/rotated_iou.h"

namespace polyop {
namespace {

template <class T>
Status DiffIouRotatedBackwardCuda(const DiffIouRotatedBackward& op, const CudaContext& cuda,
                                  Tensor<const T, 2> grad_iou, Tensor<const T, 3> boxes_a, Tensor<const T, 3> boxes_b,
                                  std::optional<Tensor<T, 3>> grad_boxes_a, std::optional<Tensor<T, 3>> grad_boxes_b) {
  const T *const grads = grad_iou.data(), *const rows_a = boxes_a.data(), *const rows_b = boxes_b.data();
  T* const to_a = grad_boxes_a ? grad_boxes_a->data() : nullptr;
  T* const to_b = grad_boxes_b ? grad_boxes_b->data() : nullptr;
  const int64_t columns = boxes_a.dim(2), dimensions = op.dimensions;
  return ForEach(cuda, grad_iou.size(), [=] POLYOP_DEVICE(int64_t i) {
    const DiffIouBox a = DiffIouBox::Of(rows_a + i * columns, dimensions);
    const DiffIouBox b = DiffIouBox::Of(rows_b + i * columns, dimensions);
    DiffIouSlope of_a, of_b;
    DiffIouGradient(a, b, ToFloat(grads[i]), &of_a, &of_b);
    if (to_a) of_a.Write(dimensions, to_a + i * columns);
    if (to_b) of_b.Write(dimensions, to_b + i * columns);
  });
}

POLYOP_CUDA_KERNELS(DiffIouRotatedBackward, DiffIouRotatedBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
