// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv2d/deform_conv2d.h"
#include "ops/deform/deform_conv_cuda.h"

namespace polyop {
namespace {

template <class T>
Status DeformConv2dCuda(const DeformConv2d& op, const CudaContext& cuda, Tensor<const T, 4> input,
                        Tensor<const T, 4> offset, Tensor<const T, 4> weight, Tensor<T, 4> output) {
  return DeformConvCuda<T>(op, cuda, input, offset.data(), nullptr, weight, nullptr, output);
}

POLYOP_CUDA_KERNELS(DeformConv2d, DeformConv2dCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
