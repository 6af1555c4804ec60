#include "families/sampling/grid_backward.h"
#include "families/sampling/grid_samples.h"
#include "ops/grid_sampler/grid_sampler_backward.h"

namespace polyop {
namespace {

template <class T, int kRank>
Status GridSamplerBackwardCpu(const GridSamplerBackward& op, const Context& context,
                              const Tensor<const T, kRank>& grad_output, const Tensor<const T, kRank>& input,
                              const Tensor<const T, kRank>& grid, const std::optional<Tensor<T, kRank>>& grad_input,
                              const std::optional<Tensor<T, kRank>>& grad_grid) {
  constexpr auto backward = [] {
    if constexpr (kRank == 4) {
      return Sample2dBackward<T>;
    } else {
      return Sample3dBackward<T>;
    }
  }();
  constexpr bool kF32 = std::is_same_v<T, float>;
  const Scratch<float> widened = context.Allocate<float>(kF32 ? 0 : grid.size());
  if (!widened) return Internal("out of memory: a grid of shape ", ToString(grid.shape()));
  const float* points = widened.data();
  if constexpr (kF32) {
    points = grid.data();
  } else {
    WidenPoints(context, grid.data(), grid.size(), widened.data());
  }
  return backward(context, op, grad_output, input, points, grad_input ? grad_input->data() : nullptr,
                  grad_grid ? grad_grid->data() : nullptr);
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
