// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/grid_reference.h"
#include "ops/sampling/grid_sampler/grid_sampler_backward.h"

namespace polyop {
namespace {

template <int kAxes>
Status GridSamplerBackwardReference(const GridSamplerBackward& op, const Context&,
                                    Tensor<const double, kAxes + 2> grad_output, Tensor<const double, kAxes + 2> input,
                                    Tensor<const double, kAxes + 2> grid,
                                    std::optional<Tensor<double, kAxes + 2>> grad_input,
                                    std::optional<Tensor<double, kAxes + 2>> grad_grid) {
  return reference::SampleGridBackward<kAxes>(op, grad_output, input, grid.data(),
                                              grad_input ? grad_input->data() : nullptr,
                                              grad_grid ? grad_grid->data() : nullptr);
}
POLYOP_REFERENCE_KERNELS(GridSamplerBackward, GridSamplerBackwardReference, 2, 3);

}  // namespace
}  // namespace polyop
