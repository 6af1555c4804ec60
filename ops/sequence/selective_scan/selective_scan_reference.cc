// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/sequence/selective_scan/selective_scan.h"
#include "ops/sequence/selective_scan/selective_scan_reference.h"

namespace polyop {
namespace {

Status SelectiveScanReference(const SelectiveScan& op, const Context&, Tensor<const double, 3> u,
                              Tensor<const double, 3> delta, Tensor<const double, 2> A, Tensor<const double, 4> B,
                              Tensor<const double, 4> C, std::optional<Tensor<const double, 1>> D,
                              std::optional<Tensor<const double, 3>> z,
                              std::optional<Tensor<const double, 1>> delta_bias,
                              std::optional<Tensor<const double, 3>> initial_state, Tensor<double, 3> output,
                              Tensor<double, 3> last_state) {
  const int64_t dim = u.dim(1), length = u.dim(2), states = A.dim(1), groups = B.dim(1);
  for (int64_t row = 0; row < u.dim(0) * dim; ++row) {
    const int64_t n = row / dim, c = row % dim, g = c / (dim / groups);
    std::vector<double> h(static_cast<size_t>(states), 0.0);
    for (int64_t s = 0; s < states && initial_state; ++s) h[s] = (*initial_state)[row * states + s];
    for (int64_t l = 0; l < length; ++l) {
      const double step = reference::StepSize(delta[row * length + l] + (delta_bias ? (*delta_bias)[c] : 0.0), op);
      const double x = u[row * length + l];
      double y = D ? (*D)[c] * x : 0.0;
      for (int64_t s = 0; s < states; ++s) {
        const int64_t at = ((n * groups + g) * states + s) * length + l;
        h[s] = std::exp(step * A[c * states + s]) * h[s] + step * x * B[at];
        y += h[s] * C[at];
      }
      if (z) y *= (*z)[row * length + l] * reference::Sigmoid((*z)[row * length + l]);
      output[row * length + l] = y;
    }
    for (int64_t s = 0; s < states; ++s) last_state[row * states + s] = h[s];
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(SelectiveScan, SelectiveScanReference);

}  // namespace
}  // namespace polyop
