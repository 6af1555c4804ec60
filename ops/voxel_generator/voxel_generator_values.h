// What the numbers of points must satisfy: the CPU's kernel and the reference refuse the same.
#pragma once

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

template <class I>
Status CheckNumPoints(const Tensor<const I, 1>& num_points, int64_t most) {
  for (int64_t n = 0; n < num_points.dim(0); ++n) {
    if (num_points[n] >= 0 && num_points[n] <= most) continue;
    return InvalidArgument("'num_points'[", n, "] is ", int64_t{num_points[n]}, ", wanted a value in [0, M = ", most,
                           "]");
  }
  return Status::Ok();
}

}  // namespace polyop
