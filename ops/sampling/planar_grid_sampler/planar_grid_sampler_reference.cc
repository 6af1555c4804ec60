// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/sampling/grid_reference.h"
#include "ops/sampling/planar_grid_sampler/planar_grid_sampler.h"

namespace polyop {
namespace {

template <int kAxes>
Status PlanarGridSamplerReference(const PlanarGridSampler& op, const Context&, Tensor<const double, kAxes + 2> input,
                                  Tensor<const double, kAxes + 2> grid, Tensor<double, kAxes + 2> output) {
  const int64_t points = PlanePixels(grid.shape());
  std::vector<double> normalized;
  for (int64_t n = 0; n < grid.dim(0); ++n) {
    for (int64_t p = 0; p < points; ++p) {
      for (int64_t a = 0; a < kAxes; ++a) normalized.push_back(grid[(n * kAxes + a) * points + p] / 10);
    }
  }
  return reference::SampleGrid<kAxes>(op, input, normalized.data(), output);
}
POLYOP_REFERENCE_KERNELS(PlanarGridSampler, PlanarGridSamplerReference, 2, 3);

}  // namespace
}  // namespace polyop
