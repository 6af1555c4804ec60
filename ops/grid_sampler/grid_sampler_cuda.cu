#include "families/sampling/grid_samples_cuda.h"
#include "ops/grid_sampler/grid_sampler.h"

namespace polyop {
namespace {

// The grid as it is.
template <class T, int kAxes>
struct GridPoints {
  static constexpr bool kInPixels = false;
  const T* grid;
  int64_t points;  // of a picture

  POLYOP_HD void At(int64_t picture, int64_t point, float at[kAxes]) const {
    const T* const from = grid + (picture * points + point) * kAxes;
    for (int a = 0; a < kAxes; ++a) at[a] = ToFloat(from[a]);
  }
};

template <class T, int kAxes>
Status GridSamplerCuda(const GridSampler& op, const CudaContext& cuda, Tensor<const T, kAxes + 2> input,
                       Tensor<const T, kAxes + 2> grid, Tensor<T, kAxes + 2> output) {
  const GridPoints<T, kAxes> points{grid.data(), PlanePixels(output.shape())};
  return SampleCuda<kAxes>(cuda, op, input, points, output);
}

POLYOP_CUDA_KERNEL(GridSampler, GridSampler2dF32, GridSamplerCuda<float, 2>);
POLYOP_CUDA_KERNEL(GridSampler, GridSampler2dF16, GridSamplerCuda<Half, 2>);
POLYOP_CUDA_KERNEL(GridSampler, GridSampler2dBF16, GridSamplerCuda<BFloat16, 2>);
POLYOP_CUDA_KERNEL(GridSampler, GridSampler3dF32, GridSamplerCuda<float, 3>);
POLYOP_CUDA_KERNEL(GridSampler, GridSampler3dF16, GridSamplerCuda<Half, 3>);
POLYOP_CUDA_KERNEL(GridSampler, GridSampler3dBF16, GridSamplerCuda<BFloat16, 3>);

}  // namespace
}  // namespace polyop
