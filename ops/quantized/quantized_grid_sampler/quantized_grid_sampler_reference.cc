// SPDX-License-Identifier: Apache-2.0
#include "ops/quantized/quantized_grid_sampler/quantized_grid_sampler.h"
#include "ops/quantized/quantized_reference.h"
#include "ops/sampling/grid_reference.h"

namespace polyop {
namespace {

template <class I, int kAxes>
Status QuantizedGridSamplerReference(const QuantizedGridSampler& op, const Context&, Tensor<const I, kAxes + 2> input,
                                     Tensor<const float, kAxes + 2> grid, Tensor<I, kAxes + 2> output) {
  const auto real = reference::Dequantized(op, input);
  auto result = reference::ResultsFor(output);
  const std::vector<double> points(grid.data(), grid.data() + grid.size());
  POLYOP_RETURN_IF_ERROR(reference::SampleGrid<kAxes>(op, real.view(), points.data(), result.view()));
  reference::Quantize(op, result, output);
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(QuantizedGridSampler, QuantizedGridSamplerReference, (int8_t, 2), (uint8_t, 2), (int8_t, 3),
                         (uint8_t, 3));

}  // namespace
}  // namespace polyop
