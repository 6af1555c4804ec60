// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/boxes/min_area_polygons/min_area_polygons.h"
#include "ops/boxes/min_area_polygons/min_area_rectangle.h"

namespace polyop {
namespace {

template <class T>
Status MinAreaPolygonsCuda(const MinAreaPolygons&, const CudaContext& cuda, Tensor<const T, 2> pointsets,
                           Tensor<T, 2> polygons) {
  const T* const sets = pointsets.data();
  T* const to = polygons.data();
  return ForEach(cuda, pointsets.dim(0), [=] POLYOP_DEVICE(int64_t i) { MinAreaRectangle(sets + 18 * i, to + 8 * i); });
}

POLYOP_CUDA_KERNELS(MinAreaPolygons, MinAreaPolygonsCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
