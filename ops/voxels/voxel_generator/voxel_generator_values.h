// SPDX-License-Identifier: Apache-2.0
// A check of the numbers of points, shared by the CPU kernel and the reference.
#pragma once

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

template <class I>
Status CheckNumPoints(const Tensor<const I, 1>& num_points, int64_t max_points) {
  for (int64_t n = 0; n < num_points.dim(0); ++n) {
    if (num_points[n] >= 0 && num_points[n] <= max_points) continue;
    return InvalidArgument("'num_points'[", n, "]: expected a value in [0, M = ", max_points, "], got ",
                           int64_t{num_points[n]});
  }
  return Status::Ok();
}

}  // namespace polyop
