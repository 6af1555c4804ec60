// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/grid_backward.h"
#include "ops/sampling/planar_grid_sampler/planar_grid_sampler_backward.h"
#include "ops/sampling/planar_grid_sampler/planar_points.h"

namespace polyop {
namespace {

template <class T, int kAxes>
Status PlanarBackward(const PlanarGridSamplerBackward& op, const Context& context,
                      const Tensor<const T, kAxes + 2>& grad_output, const Tensor<const T, kAxes + 2>& input,
                      const Tensor<const T, kAxes + 2>& grid, const std::optional<Tensor<T, kAxes + 2>>& grad_input,
                      const std::optional<Tensor<T, kAxes + 2>>& grad_grid) {
  const Scratch<float> points = context.Allocate<float>(grid.size());
  const Scratch<float> grad_points = context.Allocate<float>(grad_grid ? grid.size() : 0);
  if (!points || !grad_points) return Internal("out of memory: a grid of shape ", ToString(grid.shape()));
  PlanesToPoints<kAxes>(context, grid, points.data());
  POLYOP_RETURN_IF_ERROR(SampleGridBackward<kAxes>(context, op, grad_output, input, points.data(),
                                                   grad_input ? grad_input->data() : nullptr,
                                                   grad_grid ? grad_points.data() : nullptr));
  if (grad_grid) PlanesFromPoints<kAxes>(context, grad_points.data(), *grad_grid);
  return Status::Ok();
}

template <class T>
Status PlanarBackward2d(const PlanarGridSamplerBackward& op, const Context& context, Tensor<const T, 4> grad_output,
                        Tensor<const T, 4> input, Tensor<const T, 4> grid, std::optional<Tensor<T, 4>> grad_input,
                        std::optional<Tensor<T, 4>> grad_grid) {
  return PlanarBackward<T, 2>(op, context, grad_output, input, grid, grad_input, grad_grid);
}
template <class T>
Status PlanarBackward3d(const PlanarGridSamplerBackward& op, const Context& context, Tensor<const T, 5> grad_output,
                        Tensor<const T, 5> input, Tensor<const T, 5> grid, std::optional<Tensor<T, 5>> grad_input,
                        std::optional<Tensor<T, 5>> grad_grid) {
  return PlanarBackward<T, 3>(op, context, grad_output, input, grid, grad_input, grad_grid);
}

POLYOP_PLAIN_CPU_KERNELS(PlanarGridSamplerBackward, PlanarBackward2d, float, Half, BFloat16);
POLYOP_PLAIN_CPU_KERNELS(PlanarGridSamplerBackward, PlanarBackward3d, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
