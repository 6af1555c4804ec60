// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv.h"
#include "ops/deform/onnx_deform_conv/onnx_deform_conv.h"

namespace polyop {
namespace {

template <class T>
Status OnnxDeformConvCpu(const OnnxDeformConv& op, const Context& context, Tensor<const T, 4> input,
                         Tensor<const T, 4> weight, Tensor<const T, 4> offset, std::optional<Tensor<const T, 1>> bias,
                         std::optional<Tensor<const T, 4>> mask, Tensor<T, 4> output) {
  return DeformConv<T>(context, op.Rule(), input, offset.data(), mask ? mask->data() : nullptr, weight,
                       bias ? bias->data() : nullptr, output);
}

POLYOP_PLAIN_CPU_KERNELS(OnnxDeformConv, OnnxDeformConvCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
