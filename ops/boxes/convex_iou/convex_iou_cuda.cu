// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/box_pairs_cuda.h"
#include "ops/boxes/convex_iou/convex_iou.h"
#include "ops/boxes/convex_polygons.h"

namespace polyop {
namespace {

template <class T>
Status ConvexIouCuda(const ConvexIou&, const CudaContext& cuda, Tensor<const T, 2> pointsets,
                     Tensor<const T, 2> polygons, Tensor<T, 2> ious) {
  const T *const sets = pointsets.data(), *const others = polygons.data();
  return MeasurePairsCuda<ConvexPolygon>(
      cuda, 1, pointsets.dim(0), polygons.dim(0),
      [=] POLYOP_DEVICE(int64_t i) { return ConvexPolygon::HullOf<9>(sets + 18 * i); },
      [=] POLYOP_DEVICE(int64_t k) { return ConvexPolygon::HullOf<4>(others + 8 * k); },
      [=] POLYOP_DEVICE(const ConvexPolygon& a, const ConvexPolygon& b) { return IouOrIof(a, b, false); }, ious.data());
}

POLYOP_CUDA_KERNELS(ConvexIou, ConvexIouCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
