// SPDX-License-Identifier: Apache-2.0
// Checks of the pyramid levels, shared by the CPU kernels and the reference kernels.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// A level's extents and the index of its first pixel in 'value'.
struct AttnLevel {
  int64_t height, width, start;
};

/// Checks that pixel indices of 'value' [N, S, heads, depth] fit 32 bits.
inline Status CheckAttnPixels(const AnyTensor& value) {
  if (value.shape.NumElements() == 0 || value.shape[1] <= INT32_MAX) return Status::Ok();
  return InvalidArgument("'value': expected at most 2147483647 pixels, got ", value.shape[1]);
}

/// Reads the levels. Returns an error unless all are within `spatial` pixels.
template <class I>
Status ReadLevels(const Tensor<const I, 2>& shapes, const Tensor<const I, 1>& starts, int64_t spatial,
                  AttnLevel* levels) {
  for (int64_t l = 0; l < starts.dim(0); ++l) {
    const AttnLevel level{shapes[2 * l], shapes[2 * l + 1], starts[l]};
    int64_t pixels = 0, end = 0;
    const bool fits = level.height >= 0 && level.width >= 0 && level.start >= 0 &&
                      !__builtin_mul_overflow(level.height, level.width, &pixels) &&
                      !__builtin_add_overflow(level.start, pixels, &end) && end <= spatial;
    if (!fits) {
      return InvalidArgument("'spatial_shapes'[", l, "]: expected a level within the ", spatial,
                             " pixels of 'value', got (", level.height, ", ", level.width, ") at 'level_start_index'[",
                             l, "] = ", level.start);
    }
    levels[l] = level;
  }
  return Status::Ok();
}

/// Reads consecutive levels, the first of which starts at pixel 0.
template <class I>
Status ReadLevels(const Tensor<const I, 2>& shapes, int64_t spatial, AttnLevel* levels) {
  int64_t start = 0;
  for (int64_t l = 0; l < shapes.dim(0); ++l) {
    const AttnLevel level{shapes[2 * l], shapes[2 * l + 1], start};
    int64_t pixels = 0;
    const bool fits = level.height >= 0 && level.width >= 0 &&
                      !__builtin_mul_overflow(level.height, level.width, &pixels) && pixels <= spatial - start;
    if (!fits) {
      return InvalidArgument("'spatial_shapes'[", l, "]: expected at most the ", spatial - start,
                             " remaining pixels of 'value', got (", level.height, ", ", level.width, ")");
    }
    levels[l] = level;
    start += pixels;
  }
  return Status::Ok();
}

}  // namespace polyop
