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
  ScanTensors(bool softplus, Tensor<const T, 3> u, Tensor<const T, 3> delta, Tensor<const float, 2> A,
              Tensor<const T, 4> B, Tensor<const T, 4> C, const std::optional<Tensor<const float, 1>>& D,
              const std::optional<Tensor<const T, 3>>& z, const std::optional<Tensor<const float, 1>>& delta_bias,
              const std::optional<Tensor<const float, 3>>& initial_state)
      : u(u.data()),
        delta(delta.data()),
        b(B.data()),
        c(C.data()),
        z(DataOf(z)),
        a(A.data()),
        d(DataOf(D)),
        bias(DataOf(delta_bias)),
        initial(DataOf(initial_state)),
        batch(u.dim(0)),
        dim(u.dim(1)),
        length(u.dim(2)),
        groups(B.dim(1)),
        states(A.dim(1)),
        softplus(softplus) {}

  const T *u, *delta, *b, *c, *z;
  const float *a, *d, *bias, *initial;
  int64_t batch, dim, length, groups, states;
  bool softplus;
};

}  // namespace polyop
