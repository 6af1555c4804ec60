// SPDX-License-Identifier: Apache-2.0
// Neighbourhood of pixels in an image (4-connected).
#pragma once

#include <cstdint>

#include "core/host_device.h"
#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// Pixels are indexed in row-major order.
struct ImageGrid {
  static constexpr int kSides = 4;

  int64_t height, width;

  POLYOP_HD int64_t size() const { return height * width; }
  /// Returns the pixel above (side 0), below (1), left (2) or right (3) of another; negative outside of the image.
  POLYOP_HD int64_t Neighbour(int64_t pixel, int side) const {
    if (side == 0) return pixel - width;  // above the first row it is negative
    if (side == 1) return pixel + width < size() ? pixel + width : -1;
    const int64_t column = static_cast<uint32_t>(pixel) % static_cast<uint32_t>(width);
    if (side == 2) return column > 0 ? pixel - 1 : -1;
    return column + 1 < width ? pixel + 1 : -1;
  }
  /// Calls visit(neighbour) for the neighbours inside the image, in order of sides. Inlined for the sake of `visit`.
  template <class Visit>
  __attribute__((always_inline)) void ForEachNeighbour(int64_t pixel, const Visit& visit) const {
    const int64_t column = static_cast<uint32_t>(pixel) % static_cast<uint32_t>(width);
    if (pixel >= width) visit(pixel - width);
    if (pixel + width < size()) visit(pixel + width);
    if (column > 0) visit(pixel - 1);
    if (column + 1 < width) visit(pixel + 1);
  }
};

/// Checks that an i32 can index the pixels of the image in the input's last two dimensions.
inline Status CheckPixels(const char* name, const AnyTensor& input) {
  const int rank = input.shape.rank();
  const int64_t height = input.shape[rank - 2], width = input.shape[rank - 1];
  if (width == 0 || height <= INT32_MAX / width) return Status::Ok();
  return InvalidArgument("'", name, "': expected at most 2147483647 pixels per image, got ", height, " x ", width);
}

}  // namespace polyop
