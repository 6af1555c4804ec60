// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/grid_sampler/grid_sampler.h"
#include "ops/sampling/grid_samples.h"

namespace polyop {
namespace {

template <class T, int kAxes>
Status GridSamplerCpu(const GridSampler& op, const Context& context, const Tensor<const T, kAxes + 2>& input,
                      const Tensor<const T, kAxes + 2>& grid, const Tensor<T, kAxes + 2>& output) {
  if constexpr (std::is_same_v<T, float>) {
    return SampleGrid<kAxes>(context, op, input, grid.data(), output);
  } else {
    const Scratch<float> points = context.Allocate<float>(grid.size());
    if (!points) return Internal("out of memory: a grid of shape ", ToString(grid.shape()));
    WidenPoints(context, grid.data(), grid.size(), points.data());
    return SampleGrid<kAxes>(context, op, input, points.data(), output);
  }
}

template <class T>
Status GridSampler2d(const GridSampler& op, const Context& context, Tensor<const T, 4> input, Tensor<const T, 4> grid,
                     Tensor<T, 4> output) {
  return GridSamplerCpu<T, 2>(op, context, input, grid, output);
}
template <class T>
Status GridSampler3d(const GridSampler& op, const Context& context, Tensor<const T, 5> input, Tensor<const T, 5> grid,
                     Tensor<T, 5> output) {
  return GridSamplerCpu<T, 3>(op, context, input, grid, output);
}

POLYOP_PLAIN_CPU_KERNELS(GridSampler, GridSampler2d, float, Half, BFloat16);
POLYOP_PLAIN_CPU_KERNELS(GridSampler, GridSampler3d, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
