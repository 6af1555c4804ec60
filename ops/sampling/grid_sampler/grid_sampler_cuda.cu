// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/grid_sampler/grid_points_cuda.h"
#include "ops/sampling/grid_sampler/grid_sampler.h"
#include "ops/sampling/grid_samples_cuda.h"

namespace polyop {
namespace {

template <class T, int kAxes>
Status GridSamplerCuda(const GridSampler& op, const CudaContext& cuda, Tensor<const T, kAxes + 2> input,
                       Tensor<const T, kAxes + 2> grid, Tensor<T, kAxes + 2> output) {
  const GridPoints<T, kAxes> points{grid.data(), PlanePixels(output.shape())};
  return SampleCuda<kAxes>(cuda, op, input, points, output);
}

POLYOP_CUDA_KERNELS(GridSampler, GridSamplerCuda, (float, 2), (Half, 2), (BFloat16, 2), (float, 3), (Half, 3),
                    (BFloat16, 3));

}  // namespace
}  // namespace polyop
