#include "families/resize/bicubic_resize_cuda.h"
#include "ops/dynamic_resize/dynamic_resize.h"

namespace polyop {
namespace {

// `scales` decides the output's shape, so it lies in host memory.
template <class T>
Status DynamicResizeCuda(const DynamicResize&, const CudaContext& cuda, Tensor<const T, 4> input,
                         Tensor<const float, 1> scales, Tensor<T, 4> output) {
  return BicubicResizeCuda(cuda, input, ResizeAxis::ByScale(input.dim(2), output.dim(2), scales[2]),
                           ResizeAxis::ByScale(input.dim(3), output.dim(3), scales[3]), output);
}

POLYOP_CUDA_KERNEL(DynamicResize, DynamicResizeF32, DynamicResizeCuda<float>);
POLYOP_CUDA_KERNEL(DynamicResize, DynamicResizeF16, DynamicResizeCuda<Half>);
POLYOP_CUDA_KERNEL(DynamicResize, DynamicResizeBF16, DynamicResizeCuda<BFloat16>);

}  // namespace
}  // namespace polyop
