#include "families/resize/bicubic_resize_cuda.h"
#include "ops/cubic_resize/cubic_resize.h"

namespace polyop {
namespace {

// `sizes` decide the output's shape, so they lie in host memory.
template <class T>
Status CubicResizeCuda(const CubicResize& op, const CudaContext& cuda, Tensor<const T, 4> input,
                       Tensor<const int64_t, 1>, Tensor<T, 4> output) {
  return BicubicResizeCuda(cuda, input, op.Axis(input.dim(2), output.dim(2)), op.Axis(input.dim(3), output.dim(3)),
                           output);
}

POLYOP_CUDA_KERNEL(CubicResize, CubicResizeF32, CubicResizeCuda<float>);
POLYOP_CUDA_KERNEL(CubicResize, CubicResizeF16, CubicResizeCuda<Half>);
POLYOP_CUDA_KERNEL(CubicResize, CubicResizeBF16, CubicResizeCuda<BFloat16>);

}  // namespace
}  // namespace polyop
