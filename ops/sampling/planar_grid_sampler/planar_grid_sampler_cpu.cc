// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/grid_samples.h"
#include "ops/sampling/planar_grid_sampler/planar_points.h"

namespace polyop {
namespace {

template <class T, int kAxes>
Status PlanarGridSamplerCpu(const PlanarGridSampler& op, const Context& context,
                            const Tensor<const T, kAxes + 2>& input, const Tensor<const T, kAxes + 2>& grid,
                            const Tensor<T, kAxes + 2>& output) {
  const Scratch<float> points = context.Allocate<float>(grid.size());
  if (!points) return Internal("out of memory: a grid of shape ", ToString(grid.shape()));
  PlanesToPoints<kAxes>(context, grid, points.data());
  return SampleGrid<kAxes>(context, op, input, points.data(), output);
}

template <class T>
Status PlanarGridSampler2d(const PlanarGridSampler& op, const Context& context, Tensor<const T, 4> input,
                           Tensor<const T, 4> grid, Tensor<T, 4> output) {
  return PlanarGridSamplerCpu<T, 2>(op, context, input, grid, output);
}
template <class T>
Status PlanarGridSampler3d(const PlanarGridSampler& op, const Context& context, Tensor<const T, 5> input,
                           Tensor<const T, 5> grid, Tensor<T, 5> output) {
  return PlanarGridSamplerCpu<T, 3>(op, context, input, grid, output);
}

POLYOP_PLAIN_CPU_KERNELS(PlanarGridSampler, PlanarGridSampler2d, float, Half, BFloat16);
POLYOP_PLAIN_CPU_KERNELS(PlanarGridSampler, PlanarGridSampler3d, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
