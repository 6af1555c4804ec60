// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv.h"
#include "ops/quantized/quantized_deform_conv/quantized_deform_conv.h"

namespace polyop {
namespace {

template <class I>
Status QuantizedDeformConvCpu(const QuantizedDeformConv& op, const Context& context, Tensor<const I, 4> x,
                              Tensor<const int8_t, 4> weight, Tensor<const float, 1> weight_scale,
                              Tensor<const float, 4> offset, std::optional<Tensor<const float, 1>> bias,
                              std::optional<Tensor<const float, 4>> mask, Tensor<I, 4> y) {
  const Scratch<float> scaled = context.Allocate<float>(bias ? bias->size() : 0);
  if (bias && !scaled) return Internal("out of memory: ", bias->size(), " values of 'B'");
  for (int64_t o = 0; bias && o < bias->size(); ++o) scaled[o] = (*bias)[o] / op.input_scale;
  return DeformConvOfCodes(context, op.Rule(), AsQ8(x), offset.data(), mask ? mask->data() : nullptr, weight,
                           weight_scale.data(), bias ? scaled.data() : nullptr, op.Codes<I>(), AsQ8(y));
}

POLYOP_PLAIN_CPU_KERNELS(QuantizedDeformConv, QuantizedDeformConvCpu, int8_t, uint8_t);

}  // namespace
}  // namespace polyop
