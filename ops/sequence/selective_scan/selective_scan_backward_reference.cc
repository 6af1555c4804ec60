// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/sequence/selective_scan/selective_scan_backward.h"
#include "ops/sequence/selective_scan/selective_scan_reference.h"

namespace polyop {
namespace {

template <int R>
using Gradient = std::optional<Tensor<double, R>>;

// Adds to an element of a gradient if it is requested.
template <int R>
void Add(const Gradient<R>& to, int64_t at, double value) {
  if (to) (*to)[at] += value;
}
template <int R>
void Clear(const Gradient<R>& gradient) {
  for (int64_t i = 0; gradient && i < gradient->size(); ++i) (*gradient)[i] = 0;
}

Status SelectiveScanBackwardReference(
    const SelectiveScanBackward& op, const Context&, Tensor<const double, 3> grad_output,
    Tensor<const double, 3> grad_last_state, Tensor<const double, 3> u, Tensor<const double, 3> delta,
    Tensor<const double, 2> A, Tensor<const double, 4> B, Tensor<const double, 4> C,
    std::optional<Tensor<const double, 1>> D, std::optional<Tensor<const double, 3>> z,
    std::optional<Tensor<const double, 1>> delta_bias, std::optional<Tensor<const double, 3>> initial_state,
    Gradient<3> grad_u, Gradient<3> grad_delta, Gradient<2> grad_A, Gradient<4> grad_B, Gradient<4> grad_C,
    Gradient<1> grad_D, Gradient<3> grad_z, Gradient<1> grad_delta_bias, Gradient<3> grad_initial_state) {
  const int64_t dim = u.dim(1), length = u.dim(2), states = A.dim(1), groups = B.dim(1);
  Clear(grad_u), Clear(grad_delta), Clear(grad_A), Clear(grad_B), Clear(grad_C);
  Clear(grad_D), Clear(grad_z), Clear(grad_delta_bias), Clear(grad_initial_state);
  for (int64_t row = 0; row < u.dim(0) * dim; ++row) {
    const int64_t n = row / dim, c = row % dim, g = c / (dim / groups);
    const double* const rates = A.data() + c * states;
    const auto coefficient = [&](int64_t s, int64_t l) { return ((n * groups + g) * states + s) * length + l; };
    // h[l] is the state before step l.
    std::vector<std::vector<double>> h(static_cast<size_t>(length) + 1, std::vector<double>(states, 0.0));
    std::vector<double> sizes(length), sums(length), of_state(states);
    for (int64_t s = 0; s < states && initial_state; ++s) h[0][s] = (*initial_state)[row * states + s];
    for (int64_t l = 0; l < length; ++l) {
      sums[l] = delta[row * length + l] + (delta_bias ? (*delta_bias)[c] : 0.0);
      sizes[l] = reference::StepSize(sums[l], op);
      for (int64_t s = 0; s < states; ++s) {
        h[l + 1][s] = std::exp(sizes[l] * rates[s]) * h[l][s] + sizes[l] * u[row * length + l] * B[coefficient(s, l)];
      }
    }
    for (int64_t s = 0; s < states; ++s) of_state[s] = grad_last_state[row * states + s];
    for (int64_t l = length - 1; l >= 0; --l) {
      const int64_t at = row * length + l;
      const double x = u[at], size = sizes[l];
      double of_y = grad_output[at];
      if (z) {
        double y = D ? (*D)[c] * x : 0.0;
        for (int64_t s = 0; s < states; ++s) y += h[l + 1][s] * C[coefficient(s, l)];
        const double gate = (*z)[at], sigmoid = reference::Sigmoid(gate);
        Add(grad_z, at, of_y * y * sigmoid * (1 + gate * (1 - sigmoid)));
        of_y *= gate * sigmoid;
      }
      Add(grad_D, c, of_y * x);
      double of_size = 0, of_u = D ? of_y * (*D)[c] : 0.0;
      for (int64_t s = 0; s < states; ++s) {
        const int64_t k = coefficient(s, l);
        const double decay = std::exp(size * rates[s]);
        Add(grad_C, k, of_y * h[l + 1][s]);
        of_state[s] += of_y * C[k];
        Add(grad_B, k, of_state[s] * size * x);
        of_u += of_state[s] * size * B[k];
        of_size += of_state[s] * (x * B[k] + decay * rates[s] * h[l][s]);
        Add(grad_A, c * states + s, of_state[s] * decay * size * h[l][s]);
        of_state[s] *= decay;
      }
      Add(grad_u, at, of_u);
      if (op.delta_softplus && !(sums[l] > 20)) of_size *= reference::Sigmoid(sums[l]);
      Add(grad_delta, at, of_size);
      Add(grad_delta_bias, c, of_size);
    }
    for (int64_t s = 0; s < states; ++s) Add(grad_initial_state, row * states + s, of_state[s]);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(SelectiveScanBackward, SelectiveScanBackwardReference);

}  // namespace
}  // namespace polyop
