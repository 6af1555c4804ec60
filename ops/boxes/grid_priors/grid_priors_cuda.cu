// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/boxes/grid_priors/grid_priors.h"

namespace polyop {
namespace {

template <class T>
Status GridPriorsCuda(const GridPriors& op, const CudaContext& cuda, Tensor<const T, 2> base, AnyTensor,
                      AnyTensor width, Tensor<T, 2> priors) {
  const T* const from = base.data();
  T* const to = priors.data();
  const Divider row(4 * base.dim(0)), columns(width.shape[0]);
  const double stride_w = static_cast<double>(op.stride_w), stride_h = static_cast<double>(op.stride_h);
  return ForEach(cuda, priors.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t coordinate, x;
    const int64_t cell = row.Split(i, &coordinate), y = columns.Split(cell, &x);
    // Computed in fp64, so that the product does not overflow for a large stride.
    const double shift = coordinate % 2 == 0 ? static_cast<double>(x) * stride_w : static_cast<double>(y) * stride_h;
    to[i] = FromFloat<T>(ToFloat(from[coordinate]) + static_cast<float>(shift));
  });
}

POLYOP_CUDA_KERNELS(GridPriors, GridPriorsCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
