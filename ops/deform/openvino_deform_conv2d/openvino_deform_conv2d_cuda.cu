// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv_cuda.h"
#include "ops/deform/openvino_deform_conv2d/openvino_deform_conv2d.h"

namespace polyop {
namespace {

template <class T>
Status OpenvinoDeformConv2dCuda(const OpenvinoDeformConv2d& op, const CudaContext& cuda, Tensor<const T, 4> input,
                                Tensor<const T, 4> offset, Tensor<const T, 4> weight, Tensor<T, 4> output) {
  return DeformConvCuda<T>(op.Rule(), cuda, input, offset.data(), nullptr, weight, nullptr, output);
}

POLYOP_CUDA_KERNELS(OpenvinoDeformConv2d, OpenvinoDeformConv2dCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
