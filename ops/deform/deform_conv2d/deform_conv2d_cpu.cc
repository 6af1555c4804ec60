// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv.h"
#include "ops/deform/deform_conv2d/deform_conv2d.h"

namespace polyop {
namespace {

template <class T>
Status DeformConv2dCpu(const DeformConv2d& op, const Context& context, Tensor<const T, 4> input,
                       Tensor<const T, 4> offset, Tensor<const T, 4> weight, Tensor<T, 4> output) {
  return DeformConv<T>(context, op, input, offset.data(), nullptr, weight, nullptr, output);
}

POLYOP_PLAIN_CPU_KERNELS(DeformConv2d, DeformConv2dCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
