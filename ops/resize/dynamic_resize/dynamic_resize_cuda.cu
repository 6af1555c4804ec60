// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/bicubic_resize_cuda.h"
#include "ops/resize/dynamic_resize/dynamic_resize.h"

namespace polyop {
namespace {

// `scales` determines the output's shape and therefore is in host memory.
template <class T>
Status DynamicResizeCuda(const DynamicResize&, const CudaContext& cuda, Tensor<const T, 4> input,
                         Tensor<const float, 1> scales, Tensor<T, 4> output) {
  return BicubicResizeCuda(cuda, input, ResizeAxis::ByScale(input.dim(2), output.dim(2), scales[2]),
                           ResizeAxis::ByScale(input.dim(3), output.dim(3), scales[3]), output);
}

POLYOP_CUDA_KERNELS(DynamicResize, DynamicResizeCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
