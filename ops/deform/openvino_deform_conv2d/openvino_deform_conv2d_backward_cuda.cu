// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv_backward_cuda.h"
#include "ops/deform/openvino_deform_conv2d/openvino_deform_conv2d_backward.h"

namespace polyop {
namespace {

template <class T>
Status OpenvinoDeformConv2dBackwardCuda(const OpenvinoDeformConv2dBackward& op, const CudaContext& cuda,
                                        Tensor<const T, 4> grad_output, Tensor<const T, 4> input,
                                        Tensor<const T, 4> offset, Tensor<const T, 4> weight,
                                        std::optional<Tensor<T, 4>> grad_input, std::optional<Tensor<T, 4>> grad_offset,
                                        std::optional<Tensor<T, 4>> grad_weight) {
  const DeformConvGradientsCuda<T> gradients{grad_input, grad_offset, std::nullopt, grad_weight, std::nullopt};
  return DeformConvBackwardCuda<T>(op.Rule(), cuda, grad_output, input, offset.data(), nullptr, weight, gradients);
}

POLYOP_ATOMIC_CUDA_KERNELS(OpenvinoDeformConv2dBackward, OpenvinoDeformConv2dBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
