// SPDX-License-Identifier: Apache-2.0
// Strides for elementwise loops over two tensors that broadcast.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace polyop {

/// The output's extents and both inputs' strides, innermost first. Adjacent dimensions that both inputs traverse
/// contiguously are merged. There is at least one dimension; a stride of 0 repeats an element.
struct BroadcastAxes {
  int rank = 0;
  int64_t extent[kMaxRank + 1] = {}, a_stride[kMaxRank + 1] = {}, b_stride[kMaxRank + 1] = {};

  static BroadcastAxes Merge(const Shape& out, const Shape& a, const Shape& b) {
    BroadcastAxes axes;
    int64_t a_stride = 1, b_stride = 1;
    for (int i = 0; i < out.rank(); ++i) {
      const int64_t extent = out[out.rank() - 1 - i];
      const int64_t ea = i < a.rank() ? a[a.rank() - 1 - i] : 1, eb = i < b.rank() ? b[b.rank() - 1 - i] : 1;
      const int64_t sa = ea == 1 ? 0 : a_stride, sb = eb == 1 ? 0 : b_stride;
      a_stride *= ea;
      b_stride *= eb;
      if (extent == 1) continue;
      const int last = axes.rank - 1;
      if (last >= 0 && sa == axes.a_stride[last] * axes.extent[last] && sb == axes.b_stride[last] * axes.extent[last]) {
        axes.extent[last] *= extent;
        continue;
      }
      axes.extent[axes.rank] = extent;
      axes.a_stride[axes.rank] = sa;
      axes.b_stride[axes.rank] = sb;
      ++axes.rank;
    }
    if (axes.rank == 0) axes.extent[axes.rank++] = 1;
    return axes;
  }
};

}  // namespace polyop
