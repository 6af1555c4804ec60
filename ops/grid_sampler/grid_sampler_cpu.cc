#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/grid_sampler/grid_sampler_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/sampling/grid_samples-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/grid_sampler/grid_sampler.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T, int kAxes>
Status GridSamplerCpu(const GridSampler& op, const Context& context, const Tensor<const T, kAxes + 2>& input,
                      const Tensor<const T, kAxes + 2>& grid, const Tensor<T, kAxes + 2>& output) {
  if constexpr (std::is_same_v<T, float>) {
    return SampleGrid<kAxes>(context, op, input, grid.data(), output);
  } else {
    const Scratch<float> points = context.Allocate<float>(grid.size());
    if (!points) return Internal("out of memory: a grid of shape ", ToString(grid.shape()));
    context.ParallelFor(grid.size(), 1 << 14, [&](int64_t begin, int64_t end) HWY_ATTR {
      WidenRow(grid.data() + begin, end - begin, points.data() + begin);
    });
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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(GridSampler, GridSampler2dF32, GridSampler2d<float>);
POLYOP_CPU_KERNEL(GridSampler, GridSampler2dF16, GridSampler2d<Half>);
POLYOP_CPU_KERNEL(GridSampler, GridSampler2dBF16, GridSampler2d<BFloat16>);
POLYOP_CPU_KERNEL(GridSampler, GridSampler3dF32, GridSampler3d<float>);
POLYOP_CPU_KERNEL(GridSampler, GridSampler3dF16, GridSampler3d<Half>);
POLYOP_CPU_KERNEL(GridSampler, GridSampler3dBF16, GridSampler3d<BFloat16>);
}  // namespace polyop
#endif
