// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/box_pairs_cuda.h"
#include "ops/boxes3d/box3d_overlap.h"
#include "ops/boxes3d/boxes_iou3d/boxes_iou3d.h"

namespace polyop {
namespace {

template <class T>
Status BoxesIou3dCuda(const BoxesIou3d& op, const CudaContext& cuda, Tensor<const T, 2> boxes_a,
                      Tensor<const T, 2> boxes_b, Tensor<T, 2> overlap) {
  const T *const from_a = boxes_a.data(), *const from_b = boxes_b.data();
  return MeasurePairsCuda<Box3d>(
      cuda, 1, boxes_a.dim(0), boxes_b.dim(0), [=] POLYOP_DEVICE(int64_t i) { return Box3d::OfCentre(from_a + 7 * i); },
      [=] POLYOP_DEVICE(int64_t i) { return Box3d::OfCentre(from_b + 7 * i); },
      [=] POLYOP_DEVICE(const Box3d& a, const Box3d& b) { return op.Measure(a, b); }, overlap.data());
}

POLYOP_CUDA_KERNELS(BoxesIou3d, BoxesIou3dCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
