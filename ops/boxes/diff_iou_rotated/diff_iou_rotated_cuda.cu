// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/boxes/diff_iou_rotated/diff_iou_rotated.h"
#include "ops/boxes/diff_iou_rotated/rotated_iou.h"

namespace polyop {
namespace {

template <class T>
Status DiffIouRotatedCuda(const DiffIouRotated& op, const CudaContext& cuda, Tensor<const T, 3> boxes_a,
                          Tensor<const T, 3> boxes_b, Tensor<T, 2> iou) {
  const T *const rows_a = boxes_a.data(), *const rows_b = boxes_b.data();
  T* const to = iou.data();
  const int64_t columns = boxes_a.dim(2), dimensions = op.dimensions;
  return ForEach(cuda, iou.size(), [=] POLYOP_DEVICE(int64_t i) {
    const DiffIouBox a = DiffIouBox::Of(rows_a + i * columns, dimensions);
    const DiffIouBox b = DiffIouBox::Of(rows_b + i * columns, dimensions);
    to[i] = FromFloat<T>(static_cast<float>(DiffIou(a, b)));
  });
}

POLYOP_CUDA_KERNELS(DiffIouRotated, DiffIouRotatedCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
