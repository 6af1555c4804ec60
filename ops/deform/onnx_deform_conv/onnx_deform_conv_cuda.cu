// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv_cuda.h"
#include "ops/deform/onnx_deform_conv/onnx_deform_conv.h"

namespace polyop {
namespace {

template <class T>
Status OnnxDeformConvCuda(const OnnxDeformConv& op, const CudaContext& cuda, Tensor<const T, 4> input,
                          Tensor<const T, 4> weight, Tensor<const T, 4> offset, std::optional<Tensor<const T, 1>> bias,
                          std::optional<Tensor<const T, 4>> mask, Tensor<T, 4> output) {
  return DeformConvCuda<T>(op.Rule(), cuda, input, offset.data(), mask ? mask->data() : nullptr, weight,
                           bias ? bias->data() : nullptr, output);
}

POLYOP_CUDA_KERNELS(OnnxDeformConv, OnnxDeformConvCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
