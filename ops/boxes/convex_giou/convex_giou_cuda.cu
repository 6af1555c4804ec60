// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/boxes/convex_giou/convex_giou.h"
#include "ops/boxes/convex_giou/giou_slope.h"

namespace polyop {
namespace {

template <class T>
Status ConvexGiouCuda(const ConvexGiou&, const CudaContext& cuda, Tensor<const T, 2> pointsets,
                      Tensor<const T, 2> polygons, Tensor<T, 2> output) {
  const T *const sets = pointsets.data(), *const others = polygons.data();
  T* const to = output.data();
  return ForEach(cuda, output.dim(0),
                 [=] POLYOP_DEVICE(int64_t i) { ConvexGiouWithSlope(sets + 18 * i, others + 8 * i, to + 19 * i); });
}

POLYOP_CUDA_KERNELS(ConvexGiou, ConvexGiouCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
