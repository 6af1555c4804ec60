// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/grid_backward.h"
#include "ops/sampling/grid_sampler/grid_sampler_backward.h"
#include "ops/sampling/grid_samples.h"

namespace polyop {
namespace {

template <class T, int kRank>
Status GridSamplerBackwardCpu(const GridSamplerBackward& op, const Context& context,
                              const Tensor<const T, kRank>& grad_output, const Tensor<const T, kRank>& input,
                              const Tensor<const T, kRank>& grid, const std::optional<Tensor<T, kRank>>& grad_input,
                              const std::optional<Tensor<T, kRank>>& grad_grid) {
  T* const to_input = grad_input ? grad_input->data() : nullptr;
  if constexpr (std::is_same_v<T, float>) {
    return SampleGridBackward<kRank - 2>(context, op, grad_output, input, grid.data(), to_input,
                                         grad_grid ? grad_grid->data() : nullptr);
  } else {
    const Scratch<float> points = context.Allocate<float>(grid.size());
    const Scratch<float> grad_points = context.Allocate<float>(grad_grid ? grid.size() : 0);
    if (!points || !grad_points) return Internal("out of memory: a grid of shape ", ToString(grid.shape()));
    WidenPoints(context, grid.data(), grid.size(), points.data());
    POLYOP_RETURN_IF_ERROR(SampleGridBackward<kRank - 2>(context, op, grad_output, input, points.data(), to_input,
                                                         grad_grid ? grad_points.data() : nullptr));
    if (grad_grid) NarrowPoints(context, grad_points.data(), grid.size(), grad_grid->data());
    return Status::Ok();
  }
}

template <class T>
Status GridSamplerBackward2d(const GridSamplerBackward& op, const Context& context, Tensor<const T, 4> grad_output,
                             Tensor<const T, 4> input, Tensor<const T, 4> grid, std::optional<Tensor<T, 4>> grad_input,
                             std::optional<Tensor<T, 4>> grad_grid) {
  return GridSamplerBackwardCpu(op, context, grad_output, input, grid, grad_input, grad_grid);
}
template <class T>
Status GridSamplerBackward3d(const GridSamplerBackward& op, const Context& context, Tensor<const T, 5> grad_output,
                             Tensor<const T, 5> input, Tensor<const T, 5> grid, std::optional<Tensor<T, 5>> grad_input,
                             std::optional<Tensor<T, 5>> grad_grid) {
  return GridSamplerBackwardCpu(op, context, grad_output, input, grid, grad_input, grad_grid);
}

POLYOP_PLAIN_CPU_KERNELS(GridSamplerBackward, GridSamplerBackward2d, float, Half, BFloat16);
POLYOP_PLAIN_CPU_KERNELS(GridSamplerBackward, GridSamplerBackward3d, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
