// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/grid_backward_cuda.h"
#include "ops/sampling/grid_sampler/grid_points_cuda.h"
#include "ops/sampling/grid_sampler/grid_sampler_backward.h"

namespace polyop {
namespace {

// The gradients of a grid's points.
template <class T, int kAxes>
struct GridPointGrads {
  T* grid;
  int64_t points;  // per image

  POLYOP_DEVICE void Write(int64_t image, int64_t point, const float grad[kAxes]) const {
    T* const to = grid + (image * points + point) * kAxes;
    for (int a = 0; a < kAxes; ++a) to[a] = FromFloat<T>(grad[a]);
  }
};

template <class T, int kAxes>
Status GridSamplerBackwardCuda(const GridSamplerBackward& op, const CudaContext& cuda,
                               Tensor<const T, kAxes + 2> grad_output, Tensor<const T, kAxes + 2> input,
                               Tensor<const T, kAxes + 2> grid, std::optional<Tensor<T, kAxes + 2>> grad_input,
                               std::optional<Tensor<T, kAxes + 2>> grad_grid) {
  const int64_t count = PlanePixels(grad_output.shape());
  const GridPoints<T, kAxes> points{grid.data(), count};
  const GridPointGrads<T, kAxes> sink{grad_grid ? grad_grid->data() : nullptr, count};
  return SampleBackwardCuda<kAxes>(cuda, op, grad_output, input, points, grad_input, grad_grid.has_value(), sink);
}

POLYOP_ATOMIC_CUDA_KERNELS(GridSamplerBackward, GridSamplerBackwardCuda, (float, 2), (Half, 2), (BFloat16, 2),
                           (float, 3), (Half, 3), (BFloat16, 3));

}  // namespace
}  // namespace polyop
