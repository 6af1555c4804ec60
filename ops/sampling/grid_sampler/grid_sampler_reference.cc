// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/grid_reference.h"
#include "ops/sampling/grid_sampler/grid_sampler.h"

namespace polyop {
namespace {

template <int kAxes>
Status GridSamplerReference(const GridSampler& op, const Context&, Tensor<const double, kAxes + 2> input,
                            Tensor<const double, kAxes + 2> grid, Tensor<double, kAxes + 2> output) {
  return reference::SampleGrid<kAxes>(op, input, grid.data(), output);
}
POLYOP_REFERENCE_KERNELS(GridSampler, GridSamplerReference, 2, 3);

}  // namespace
}  // namespace polyop
