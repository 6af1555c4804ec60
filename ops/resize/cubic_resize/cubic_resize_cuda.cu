// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/bicubic_resize_cuda.h"
#include "ops/resize/cubic_resize/cubic_resize.h"

namespace polyop {
namespace {

// `sizes` determines the output's shape and therefore is in host memory.
template <class T>
Status CubicResizeCuda(const CubicResize& op, const CudaContext& cuda, Tensor<const T, 4> input,
                       Tensor<const int64_t, 1>, Tensor<T, 4> output) {
  return BicubicResizeCuda(cuda, input, op.Axis(input.dim(2), output.dim(2)), op.Axis(input.dim(3), output.dim(3)),
                           output);
}

POLYOP_CUDA_KERNELS(CubicResize, CubicResizeCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
