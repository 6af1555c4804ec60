// From grid_sample's normalised coordinates to pixels, by the rules of torch.nn.functional.grid_sample.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace polyop {

enum class GridPadding { kZeros, kBorder, kReflection };

/// -1 and 1 are the centres of the outer pixels (align_corners) or their outer edges.
template <class T>
inline T Unnormalize(T x, int64_t extent, bool align_corners) {
  const T size = static_cast<T>(extent);
  return align_corners ? (x + 1) / 2 * (size - 1) : ((x + 1) * size - 1) / 2;
}

/// Reflects x at `low` and `high` (given doubled, as they may lie between pixels) until it is between them.
template <class T>
inline T Reflect(T x, int64_t twice_low, int64_t twice_high) {
  if (twice_low == twice_high) return 0;
  const T low = static_cast<T>(twice_low) / 2, span = static_cast<T>(twice_high - twice_low) / 2;
  x = std::abs(x - low);
  const T extra = std::fmod(x, span), flips = std::floor(x / span);
  return std::fmod(flips, static_cast<T>(2)) == 0 ? extra + low : span - extra + low;
}

/// Applies the padding rule to a pixel coordinate. Zeros leaves it where it is, NaN becomes 0 for the others.
template <class T>
inline T Pad(T x, int64_t extent, GridPadding padding, bool align_corners) {
  if (padding == GridPadding::kZeros) return x;
  if (padding == GridPadding::kReflection) {
    x = align_corners ? Reflect<T>(x, 0, 2 * (extent - 1)) : Reflect<T>(x, -1, 2 * extent - 1);
  }
  return x > 0 ? std::min(x, static_cast<T>(extent - 1)) : 0;  // NaN is not > 0
}

}  // namespace polyop
