// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv_reference.h"
#include "ops/quantized/quantized_deform_conv/quantized_deform_conv.h"
#include "ops/quantized/quantized_reference.h"

namespace polyop {
namespace {

template <class T>
std::vector<double> Doubles(const std::optional<T>& tensor) {
  return tensor ? std::vector<double>(tensor->data(), tensor->data() + tensor->size()) : std::vector<double>();
}

template <class I>
Status QuantizedDeformConvReference(const QuantizedDeformConv& op, const Context&, Tensor<const I, 4> x,
                                    Tensor<const int8_t, 4> weight, Tensor<const float, 1> weight_scale,
                                    Tensor<const float, 4> offset, std::optional<Tensor<const float, 1>> bias,
                                    std::optional<Tensor<const float, 4>> mask, Tensor<I, 4> y) {
  const auto real = reference::Dequantized(op, x);
  auto result = reference::ResultsFor(y);
  std::vector<double> filters;
  const int64_t depth = weight.dim(1) * weight.dim(2) * weight.dim(3);
  for (int64_t i = 0; i < weight.size(); ++i) filters.push_back(double{weight_scale[i / depth]} * weight[i]);
  const std::vector<double> shifts = Doubles(std::optional(offset)), biases = Doubles(bias), masks = Doubles(mask);
  POLYOP_RETURN_IF_ERROR(reference::DeformConv(op.Rule(), real.view(), {shifts.data(), offset.shape()},
                                               mask ? masks.data() : nullptr, {filters.data(), weight.shape()},
                                               bias ? biases.data() : nullptr, result.view()));
  reference::Quantize(op, result, y);
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(QuantizedDeformConv, QuantizedDeformConvReference, int8_t, uint8_t);

}  // namespace
}  // namespace polyop
