// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/bicubic_interpolate/bicubic_interpolate.h"
#include "ops/resize/bicubic_resize_cuda.h"

namespace polyop {
namespace {

template <class T>
Status BicubicInterpolateCuda(const BicubicInterpolate& op, const CudaContext& cuda, Tensor<const T, 4> input,
                              Tensor<T, 4> output) {
  return BicubicResizeCuda(cuda, input, AxisOf(op, input.shape(), output.shape(), 2),
                           AxisOf(op, input.shape(), output.shape(), 3), output);
}

POLYOP_CUDA_KERNELS(BicubicInterpolate, BicubicInterpolateCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
