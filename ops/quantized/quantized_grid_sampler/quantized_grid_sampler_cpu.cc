// SPDX-License-Identifier: Apache-2.0
#include "ops/quantized/quantized_grid_sampler/quantized_grid_sampler.h"
#include "ops/sampling/grid_samples.h"

namespace polyop {
namespace {

template <class I>
Status QuantizedGridSampler2d(const QuantizedGridSampler& op, const Context& context, Tensor<const I, 4> input,
                              Tensor<const float, 4> grid, Tensor<I, 4> output) {
  GridAxis axes[2];
  FillGridAxes<2>(op, input.shape(), axes);
  return SampleQuantized2d(context, op.interpolation_mode, axes, AsQ8(input), grid.data(), op.Codes<I>(), AsQ8(output));
}
template <class I>
Status QuantizedGridSampler3d(const QuantizedGridSampler& op, const Context& context, Tensor<const I, 5> input,
                              Tensor<const float, 5> grid, Tensor<I, 5> output) {
  GridAxis axes[3];
  FillGridAxes<3>(op, input.shape(), axes);
  return SampleQuantized3d(context, op.interpolation_mode, axes, AsQ8(input), grid.data(), op.Codes<I>(), AsQ8(output));
}

POLYOP_PLAIN_CPU_KERNELS(QuantizedGridSampler, QuantizedGridSampler2d, int8_t, uint8_t);
POLYOP_PLAIN_CPU_KERNELS(QuantizedGridSampler, QuantizedGridSampler3d, int8_t, uint8_t);

}  // namespace
}  // namespace polyop
