// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv.h"
#include "ops/deform/openvino_deform_conv2d/openvino_deform_conv2d.h"

namespace polyop {
namespace {

template <class T>
Status OpenvinoDeformConv2dCpu(const OpenvinoDeformConv2d& op, const Context& context, Tensor<const T, 4> input,
                               Tensor<const T, 4> offset, Tensor<const T, 4> weight, Tensor<T, 4> output) {
  return DeformConv<T>(context, op.Rule(), input, offset.data(), nullptr, weight, nullptr, output);
}

POLYOP_PLAIN_CPU_KERNELS(OpenvinoDeformConv2d, OpenvinoDeformConv2dCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
