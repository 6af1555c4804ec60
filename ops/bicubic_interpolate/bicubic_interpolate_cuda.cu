#include "core/bicubic_resize_cuda.h"
#include "ops/bicubic_interpolate/bicubic_interpolate.h"

namespace polyop {
namespace {

template <class T>
Status BicubicInterpolateCuda(const BicubicInterpolate& op, const CudaContext& cuda, Tensor<const T, 4> input,
                              Tensor<T, 4> output) {
  const auto axis = [&](int dim) {
    return op.align_corners
               ? ResizeAxis::AlignedCorners(input.dim(dim), output.dim(dim))
               : ResizeAxis::ByScale(input.dim(dim), output.dim(dim), op.scale_factor[static_cast<size_t>(dim - 2)]);
  };
  return BicubicResizeCuda(cuda, input, axis(2), axis(3), output);
}

POLYOP_CUDA_KERNEL(BicubicInterpolate, BicubicInterpolateF32, BicubicInterpolateCuda<float>);
POLYOP_CUDA_KERNEL(BicubicInterpolate, BicubicInterpolateF16, BicubicInterpolateCuda<Half>);
POLYOP_CUDA_KERNEL(BicubicInterpolate, BicubicInterpolateBF16, BicubicInterpolateCuda<BFloat16>);

}  // namespace
}  // namespace polyop
