// Which pixels of a picture lie beside each other.
#pragma once

#include <cstdint>

#include "core/host_device.h"
#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// Pixels are numbered row by row.
struct PictureGrid {
  static constexpr int kSides = 4;

  int64_t height, width;

  POLYOP_HD int64_t size() const { return height * width; }
  /// The pixel above, below, left or right of another; -1 outside of the picture.
  POLYOP_HD int64_t Beside(int64_t pixel, int side) const {
    if (side == 0) return pixel - width;  // above the first row it is negative
    if (side == 1) return pixel + width < size() ? pixel + width : -1;
    const int64_t column = static_cast<uint32_t>(pixel) % static_cast<uint32_t>(width);
    if (side == 2) return column > 0 ? pixel - 1 : -1;
    return column + 1 < width ? pixel + 1 : -1;
  }
  /// Calls visit(neighbour) for those in the picture, in the order of sides. Inlined, as `visit` is meant to be.
  template <class Visit>
  __attribute__((always_inline)) void ForEachBeside(int64_t pixel, const Visit& visit) const {
    const int64_t column = static_cast<uint32_t>(pixel) % static_cast<uint32_t>(width);
    if (pixel >= width) visit(pixel - width);
    if (pixel + width < size()) visit(pixel + width);
    if (column > 0) visit(pixel - 1);
    if (column + 1 < width) visit(pixel + 1);
  }
};

/// The input's last two dimensions are a picture whose pixels an i32 can number.
inline Status CheckPixels(const char* name, const AnyTensor& input) {
  const int rank = input.shape.rank();
  const int64_t height = input.shape[rank - 2], width = input.shape[rank - 1];
  if (width == 0 || height <= INT32_MAX / width) return Status::Ok();
  return InvalidArgument("'", name, "' has ", height, " x ", width, " pixels, wanted at most 2147483647");
}

}  // namespace polyop
