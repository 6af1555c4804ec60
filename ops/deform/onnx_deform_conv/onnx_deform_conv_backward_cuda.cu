// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv_backward_cuda.h"
#include "ops/deform/onnx_deform_conv/onnx_deform_conv_backward.h"

namespace polyop {
namespace {

template <class T>
Status OnnxDeformConvBackwardCuda(const OnnxDeformConvBackward& op, const CudaContext& cuda,
                                  Tensor<const T, 4> grad_output, Tensor<const T, 4> input, Tensor<const T, 4> weight,
                                  Tensor<const T, 4> offset, std::optional<Tensor<const T, 4>> mask,
                                  std::optional<Tensor<T, 4>> grad_input, std::optional<Tensor<T, 4>> grad_weight,
                                  std::optional<Tensor<T, 4>> grad_offset, std::optional<Tensor<T, 1>> grad_bias,
                                  std::optional<Tensor<T, 4>> grad_mask) {
  const DeformConvGradientsCuda<T> gradients{grad_input, grad_offset, grad_mask, grad_weight, grad_bias};
  return DeformConvBackwardCuda<T>(op.Rule(), cuda, grad_output, input, offset.data(), mask ? mask->data() : nullptr,
                                   weight, gradients);
}

POLYOP_ATOMIC_CUDA_KERNELS(OnnxDeformConvBackward, OnnxDeformConvBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
