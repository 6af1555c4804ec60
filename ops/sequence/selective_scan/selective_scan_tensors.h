// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/tensor.h"

namespace polyop {

/// Returns the data of a tensor, or null if it is left out.
template <class T, int R>
T* DataOf(const std::optional<Tensor<T, R>>& tensor) {
  return tensor ? tensor->data() : nullptr;
}

/// The inputs of a scan. Those that are left out are null.
template <class T>
struct ScanTensors {
  ScanTensors(bool with_softplus, Tensor<const T, 3> input, Tensor<const T, 3> step, Tensor<const float, 2> A,
              Tensor<const T, 4> B, Tensor<const T, 4> C, const std::optional<Tensor<const float, 1>>& D,
              const std::optional<Tensor<const T, 3>>& gate, const std::optional<Tensor<const float, 1>>& delta_bias,
              const std::optional<Tensor<const float, 3>>& initial_state)
      : u(input.data()),
        delta(step.data()),
        b(B.data()),
        c(C.data()),
        z(DataOf(gate)),
        a(A.data()),
        d(DataOf(D)),
        bias(DataOf(delta_bias)),
        initial(DataOf(initial_state)),
        batch(input.dim(0)),
        dim(input.dim(1)),
        length(input.dim(2)),
        groups(B.dim(1)),
        states(A.dim(1)),
        softplus(with_softplus) {}

  const T *u, *delta, *b, *c, *z;
  const float *a, *d, *bias, *initial;
  int64_t batch, dim, length, groups, states;
  bool softplus;
};

}  // namespace polyop
