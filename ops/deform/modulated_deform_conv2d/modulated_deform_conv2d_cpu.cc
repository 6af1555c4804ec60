// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv.h"
#include "ops/deform/modulated_deform_conv2d/modulated_deform_conv2d.h"

namespace polyop {
namespace {

template <class T>
Status ModulatedDeformConv2dCpu(const ModulatedDeformConv2d& op, const Context& context, Tensor<const T, 4> input,
                                Tensor<const T, 4> offset, Tensor<const T, 4> mask, Tensor<const T, 4> weight,
                                std::optional<Tensor<const T, 1>> bias, Tensor<T, 4> output) {
  return DeformConv<T>(context, op, input, offset.data(), mask.data(), weight, bias ? bias->data() : nullptr, output);
}

POLYOP_PLAIN_CPU_KERNELS(ModulatedDeformConv2d, ModulatedDeformConv2dCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
