// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/sampling/grid_reference.h"
#include "ops/sampling/planar_grid_sampler/planar_grid_sampler_backward.h"

namespace polyop {
namespace {

template <int kAxes>
Status PlanarGridSamplerBackwardReference(const PlanarGridSamplerBackward& op, const Context&,
                                          Tensor<const double, kAxes + 2> grad_output,
                                          Tensor<const double, kAxes + 2> input, Tensor<const double, kAxes + 2> grid,
                                          std::optional<Tensor<double, kAxes + 2>> grad_input,
                                          std::optional<Tensor<double, kAxes + 2>> grad_grid) {
  const int64_t points = PlanePixels(grid.shape());
  // The index in the grid of coordinate a of point p of image n.
  const auto index = [&](int64_t n, int64_t p, int64_t a) { return (n * kAxes + a) * points + p; };
  std::vector<double> normalized, grads(static_cast<size_t>(grid.size()));
  for (int64_t i = 0; i < grid.dim(0) * points; ++i) {
    for (int64_t a = 0; a < kAxes; ++a) normalized.push_back(grid[index(i / points, i % points, a)] / 10);
  }
  POLYOP_RETURN_IF_ERROR(reference::SampleGridBackward<kAxes>(op, grad_output, input, normalized.data(),
                                                              grad_input ? grad_input->data() : nullptr,
                                                              grad_grid ? grads.data() : nullptr));
  for (int64_t i = 0; grad_grid && i < grid.dim(0) * points; ++i) {
    for (int64_t a = 0; a < kAxes; ++a) {
      (*grad_grid)[index(i / points, i % points, a)] = grads[static_cast<size_t>(i * kAxes + a)] / 10;
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(PlanarGridSamplerBackward, PlanarGridSamplerBackwardReference, 2, 3);

}  // namespace
}  // namespace polyop
