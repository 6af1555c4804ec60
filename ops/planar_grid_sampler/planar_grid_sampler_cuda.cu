#include "families/sampling/grid_samples_cuda.h"
#include "ops/planar_grid_sampler/planar_grid_sampler.h"

namespace polyop {
namespace {

// A plane for each coordinate.
template <class T, int kAxes>
struct PlanarPoints {
  static constexpr bool kInPixels = false;
  const T* grid;
  int64_t points;  // of a picture

  POLYOP_HD void At(int64_t picture, int64_t point, float at[kAxes]) const {
    for (int a = 0; a < kAxes; ++a) {
      at[a] = ToFloat(grid[(picture * kAxes + a) * points + point]) / PlanarGridSampler::kScale;
    }
  }
};

template <class T, int kAxes>
Status PlanarGridSamplerCuda(const PlanarGridSampler& op, const CudaContext& cuda, Tensor<const T, kAxes + 2> input,
                             Tensor<const T, kAxes + 2> grid, Tensor<T, kAxes + 2> output) {
  const PlanarPoints<T, kAxes> points{grid.data(), PlanePixels(output.shape())};
  return SampleCuda<kAxes>(cuda, op, input, points, output);
}

POLYOP_CUDA_KERNEL(PlanarGridSampler, PlanarGridSampler2dF32, PlanarGridSamplerCuda<float, 2>);
POLYOP_CUDA_KERNEL(PlanarGridSampler, PlanarGridSampler2dF16, PlanarGridSamplerCuda<Half, 2>);
POLYOP_CUDA_KERNEL(PlanarGridSampler, PlanarGridSampler2dBF16, PlanarGridSamplerCuda<BFloat16, 2>);
POLYOP_CUDA_KERNEL(PlanarGridSampler, PlanarGridSampler3dF32, PlanarGridSamplerCuda<float, 3>);
POLYOP_CUDA_KERNEL(PlanarGridSampler, PlanarGridSampler3dF16, PlanarGridSamplerCuda<Half, 3>);
POLYOP_CUDA_KERNEL(PlanarGridSampler, PlanarGridSampler3dBF16, PlanarGridSamplerCuda<BFloat16, 3>);

}  // namespace
}  // namespace polyop
