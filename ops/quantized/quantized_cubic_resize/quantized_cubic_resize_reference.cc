// SPDX-License-Identifier: Apache-2.0
#include "ops/quantized/quantized_cubic_resize/quantized_cubic_resize.h"
#include "ops/quantized/quantized_reference.h"
#include "ops/resize/cubic_resize_reference.h"

namespace polyop {
namespace {

template <class I>
Status QuantizedCubicResizeReference(const QuantizedCubicResize& op, const Context&, Tensor<const I, 4> input,
                                     Tensor<const int64_t, 1>, Tensor<I, 4> output) {
  const auto real = reference::Dequantized(op, input);
  auto result = reference::ResultsFor(output);
  POLYOP_RETURN_IF_ERROR(reference::ResizeCubic(op, real.view(), result.view()));
  reference::Quantize(op, result, output);
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(QuantizedCubicResize, QuantizedCubicResizeReference, int8_t, uint8_t);

}  // namespace
}  // namespace polyop
