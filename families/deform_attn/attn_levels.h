// What the levels' values must satisfy: the CPU's kernel and the reference refuse the same.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// A level's extents and where it begins among the pixels of 'value'.
struct AttnLevel {
  int64_t height, width, start;
};

/// Pixels of 'value', [N, S, heads, depth], fit 32 bits.
inline Status CheckAttnPixels(const AnyTensor& value) {
  if (value.shape.NumElements() == 0 || value.shape[1] <= INT32_MAX) return Status::Ok();
  return InvalidArgument("'value' has ", value.shape[1], " pixels, wanted at most 2147483647");
}

/// Reads the levels, which lie inside of `spatial` pixels.
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
      return InvalidArgument("'spatial_shapes'[", l, "] is (", level.height, ", ", level.width,
                             ") and 'level_start_index'[", l, "] is ", level.start, ", wanted a level inside the ",
                             spatial, " pixels of 'value'");
    }
    levels[l] = level;
  }
  return Status::Ok();
}

/// The same for levels that lie one behind the other from the first pixel on.
template <class I>
Status ReadLevels(const Tensor<const I, 2>& shapes, int64_t spatial, AttnLevel* levels) {
  int64_t start = 0;
  for (int64_t l = 0; l < shapes.dim(0); ++l) {
    const AttnLevel level{shapes[2 * l], shapes[2 * l + 1], start};
    int64_t pixels = 0;
    const bool fits = level.height >= 0 && level.width >= 0 &&
                      !__builtin_mul_overflow(level.height, level.width, &pixels) && pixels <= spatial - start;
    if (!fits) {
      return InvalidArgument("'spatial_shapes'[", l, "] is (", level.height, ", ", level.width, "), wanted a level of ",
                             spatial - start, " pixels of 'value' at most, which are left behind those before");
    }
    levels[l] = level;
    start += pixels;
  }
  return Status::Ok();
}

}  // namespace polyop
