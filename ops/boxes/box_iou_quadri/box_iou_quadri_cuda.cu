// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/box_iou_quadri/box_iou_quadri.h"
#include "ops/boxes/box_pairs_cuda.h"
#include "ops/boxes/convex_polygons.h"

namespace polyop {
namespace {

template <class T>
Status Measure(const BoxIouQuadri& op, const CudaContext& cuda, int64_t batches, int64_t rows, int64_t columns,
               const T* boxes_a, const T* boxes_b, T* overlap) {
  const bool of_first = op.mode == BoxIouQuadri::Mode::kIof;
  return MeasurePairsCuda<ConvexPolygon>(
      cuda, batches, rows, columns, [=] POLYOP_DEVICE(int64_t i) { return ConvexPolygon::HullOf<4>(boxes_a + 8 * i); },
      [=] POLYOP_DEVICE(int64_t i) { return ConvexPolygon::HullOf<4>(boxes_b + 8 * i); },
      [=] POLYOP_DEVICE(const ConvexPolygon& a, const ConvexPolygon& b) { return IouOrIof(a, b, of_first); }, overlap);
}

template <class T>
Status BoxIouQuadriCuda(const BoxIouQuadri& op, const CudaContext& cuda, Tensor<const T, 2> boxes_a,
                        Tensor<const T, 2> boxes_b, Tensor<T, 2> overlap) {
  return Measure(op, cuda, 1, boxes_a.dim(0), boxes_b.dim(0), boxes_a.data(), boxes_b.data(), overlap.data());
}

template <class T>
Status BoxIouQuadriOfBatchesCuda(const BoxIouQuadri& op, const CudaContext& cuda, Tensor<const T, 3> boxes_a,
                                 Tensor<const T, 3> boxes_b, Tensor<T, 3> overlap) {
  return Measure(op, cuda, boxes_a.dim(0), boxes_a.dim(1), boxes_b.dim(1), boxes_a.data(), boxes_b.data(),
                 overlap.data());
}

POLYOP_CUDA_KERNELS(BoxIouQuadri, BoxIouQuadriCuda, float, Half, BFloat16);
POLYOP_CUDA_KERNELS(BoxIouQuadri, BoxIouQuadriOfBatchesCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
