// SPDX-License-Identifier: Apache-2.0
// Attributes and checks shared by the operators that sample at a grid's points.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>

#include "core/definition.h"

namespace polyop {

/// The base of an operator's parameters.
struct GridRule {
  enum class Interpolation { kBilinear, kNearest, kBicubic };
  enum class Padding { kZeros, kBorder, kReflection };
  Interpolation interpolation_mode = Interpolation::kBilinear;
  Padding padding_mode = Padding::kZeros;
  bool align_corners = false;

  /// Checks the first two inputs, an image [N, C, ...] and a grid.
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape &input = inputs[0].shape, &grid = inputs[1].shape;
    if (input.rank() == 5 && interpolation_mode == Interpolation::kBicubic) {
      return InvalidArgument(
          "attribute 'interpolation_mode': expected bilinear or nearest for a 5-D 'input', got bicubic");
    }
    if (input[0] == 0 || input[1] == 0 || grid.NumElements() == 0) return Status::Ok();  // there is nothing to sample
    return CheckPlane("input", input, 2);
  }

  /// Checks that a plane, whose extents begin at dimension `first`, has pixels and that 32 bits can index them.
  static Status CheckPlane(std::string_view name, const Shape& shape, int first) {
    int64_t pixels = 1;
    for (int d = first; d < shape.rank(); ++d) {
      if (shape[d] > 0 && pixels > (INT32_MAX - 1) / shape[d]) {
        return InvalidArgument("'", name, "': expected at most 2147483646 pixels per plane, got shape ",
                               ToString(shape));
      }
      pixels *= shape[d];
    }
    if (pixels > 0) return Status::Ok();
    return InvalidArgument("'", name, "': expected planes with at least one pixel, got shape ", ToString(shape));
  }
};

/// The parameters of an axis.
struct GridAxis {
  GridRule::Padding padding;
  bool align_corners;
  int64_t extent;
  bool in_pixels = false;  // coordinates are pixels, not normalised
};

inline constexpr std::tuple kGridAttributes = {
    Attr("interpolation_mode", &GridRule::interpolation_mode, "interpolation between pixels")
        .Codes("bilinear", "nearest", "bicubic"),
    Attr("padding_mode", &GridRule::padding_mode, "values outside of the image").Codes("zeros", "border", "reflection"),
    Attr("align_corners", &GridRule::align_corners, "1: -1 and 1 are the outer pixels' centres; 0: their outer edges"),
};

/// Returns the number of pixels of a plane.
inline int64_t PlanePixels(const Shape& input) {
  int64_t pixels = 1;
  for (int d = 2; d < input.rank(); ++d) pixels *= input[d];
  return pixels;
}

}  // namespace polyop
