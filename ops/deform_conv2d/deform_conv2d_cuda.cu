#include "families/deform_conv/deform_conv_cuda.h"
#include "ops/deform_conv2d/deform_conv2d.h"

namespace polyop {
namespace {

template <class T>
Status DeformConv2dCuda(const DeformConv2d& op, const CudaContext& cuda, Tensor<const T, 4> input,
                        Tensor<const T, 4> offset, Tensor<const T, 4> weight, Tensor<T, 4> output) {
  return DeformConvCuda<T>(op, cuda, input, offset.data(), nullptr, weight, nullptr, output);
}

POLYOP_CUDA_KERNEL(DeformConv2d, DeformConv2dF32, DeformConv2dCuda<float>);
POLYOP_CUDA_KERNEL(DeformConv2d, DeformConv2dF16, DeformConv2dCuda<Half>);
POLYOP_CUDA_KERNEL(DeformConv2d, DeformConv2dBF16, DeformConv2dCuda<BFloat16>);

}  // namespace
}  // namespace polyop
