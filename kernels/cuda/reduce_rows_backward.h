// SPDX-License-Identifier: Apache-2.0
// Gradients of the reductions of reduce_rows.h, one column of some rows at a time. The GPU version of
// kernels/cpu/reduce_rows_backward-inl.h.
#pragma once

#include "core/dtype.h"
#include "core/host_device.h"

namespace polyop {

/// Sets to[at(r)] to the gradient of the minimum or maximum `extreme` of from[at(r)] for r in [begin, end): the first
/// row that attains it gets `grad`, the others get 0. With kNan, NaN attains it.
template <bool kNan, class T, class At>
POLYOP_HD void ExtremeOfColumnBackward(int64_t begin, int64_t end, const At& at, const T* from, float extreme, T grad,
                                       T* to) {
  bool left = true;  // no row has got the gradient yet
  for (int64_t r = begin; r < end; ++r) {
    const float x = ToFloat(from[at(r)]);
    const bool hit = left && (x == extreme || (kNan && x != x));
    to[at(r)] = hit ? grad : FromFloat<T>(0);
    left = left && !hit;
  }
}

/// Returns grad / count, the gradient of a mean; with a count of 1, of a sum.
template <class T>
POLYOP_HD T ShareOfGradient(T grad, int64_t count) {
  return count == 1 ? grad : FromFloat<T>(ToFloat(grad) / static_cast<float>(count));
}

}  // namespace polyop
