// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_attn_reference.h"
#include "ops/quantized/quantized_ms_deform_attn/quantized_ms_deform_attn.h"
#include "ops/quantized/quantized_reference.h"

namespace polyop {
namespace {

template <class I>
Status QuantizedMsDeformAttnReference(const QuantizedMsDeformAttn& op, const Context&, Tensor<const I, 4> value,
                                      Tensor<const int64_t, 2> shapes, Tensor<const int64_t, 1> starts,
                                      Tensor<const float, 6> locations, Tensor<const float, 5> weights,
                                      Tensor<I, 3> output) {
  const auto real = reference::Dequantized(op, value);
  auto result = reference::ResultsFor(output);
  const std::vector<double> at(locations.data(), locations.data() + locations.size());
  const std::vector<double> factors(weights.data(), weights.data() + weights.size());
  POLYOP_RETURN_IF_ERROR(reference::DeformAttnAtLocations(real.view(), shapes, starts, {at.data(), locations.shape()},
                                                          {factors.data(), weights.shape()}, result.values.data()));
  reference::Quantize(op, result, output);
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(QuantizedMsDeformAttn, QuantizedMsDeformAttnReference, int8_t, uint8_t);

}  // namespace
}  // namespace polyop
