// SPDX-License-Identifier: Apache-2.0
#include "ops/quantized/quantized_cubic_resize/quantized_cubic_resize.h"
#include "ops/resize/bicubic_resize.h"

namespace polyop {
namespace {

template <class I>
Status QuantizedCubicResizeCpu(const QuantizedCubicResize& op, const Context& context, Tensor<const I, 4> input,
                               Tensor<const int64_t, 1>, Tensor<I, 4> output) {
  return QuantizedBicubicResize(context, AsQ8(input), op.Axis(input.dim(2), output.dim(2)),
                                op.Axis(input.dim(3), output.dim(3)), op.Codes<I>(), AsQ8(output));
}

POLYOP_PLAIN_CPU_KERNELS(QuantizedCubicResize, QuantizedCubicResizeCpu, int8_t, uint8_t);

}  // namespace
}  // namespace polyop
