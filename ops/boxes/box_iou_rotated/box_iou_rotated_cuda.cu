// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/box_iou_rotated/box_iou_rotated.h"
#include "ops/boxes/box_pairs_cuda.h"
#include "ops/boxes/rotated_boxes.h"

namespace polyop {
namespace {

template <class T>
Status Measure(const BoxIouRotated& op, const CudaContext& cuda, int64_t batches, int64_t rows, int64_t columns,
               const T* boxes_a, const T* boxes_b, T* overlap) {
  return MeasurePairsCuda<RotatedBox>(
      cuda, batches, rows, columns, [=] POLYOP_DEVICE(int64_t i) { return BoxIouRotated::BoxOf(boxes_a + 5 * i); },
      [=] POLYOP_DEVICE(int64_t i) { return BoxIouRotated::BoxOf(boxes_b + 5 * i); },
      [=] POLYOP_DEVICE(const RotatedBox& a, const RotatedBox& b) { return op.Measure(a, b); }, overlap);
}

template <class T>
Status BoxIouRotatedCuda(const BoxIouRotated& op, const CudaContext& cuda, Tensor<const T, 2> boxes_a,
                         Tensor<const T, 2> boxes_b, Tensor<T, 2> overlap) {
  return Measure(op, cuda, 1, boxes_a.dim(0), boxes_b.dim(0), boxes_a.data(), boxes_b.data(), overlap.data());
}

template <class T>
Status BoxIouRotatedOfBatchesCuda(const BoxIouRotated& op, const CudaContext& cuda, Tensor<const T, 3> boxes_a,
                                  Tensor<const T, 3> boxes_b, Tensor<T, 3> overlap) {
  return Measure(op, cuda, boxes_a.dim(0), boxes_a.dim(1), boxes_b.dim(1), boxes_a.data(), boxes_b.data(),
                 overlap.data());
}

POLYOP_CUDA_KERNELS(BoxIouRotated, BoxIouRotatedCuda, float, Half, BFloat16);
POLYOP_CUDA_KERNELS(BoxIouRotated, BoxIouRotatedOfBatchesCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
