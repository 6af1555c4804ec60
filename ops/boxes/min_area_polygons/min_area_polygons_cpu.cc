// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/min_area_polygons/min_area_polygons.h"
#include "ops/boxes/min_area_polygons/min_area_rectangle.h"

namespace polyop {
namespace {

template <class T>
Status MinAreaPolygonsCpu(const MinAreaPolygons&, const Context& context, Tensor<const T, 2> pointsets,
                          Tensor<T, 2> polygons) {
  context.ParallelFor(pointsets.dim(0), GrainFor(2000), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) MinAreaRectangle(pointsets.data() + 18 * i, polygons.data() + 8 * i);
  });
  return Status::Ok();
}

POLYOP_PLAIN_CPU_KERNELS(MinAreaPolygons, MinAreaPolygonsCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
