// What sampling at a grid's points has in common: attributes, and what inputs must satisfy.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>

#include "core/definition.h"

namespace polyop {

/// The base of an operator's struct.
struct GridRule {
  enum class Interpolation { kBilinear, kNearest, kBicubic };
  enum class Padding { kZeros, kBorder, kReflection };
  Interpolation interpolation_mode = Interpolation::kBilinear;
  Padding padding_mode = Padding::kZeros;
  bool align_corners = false;

  /// Of the first two inputs: a picture [N, C, ...] and a grid.
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape &input = inputs[0].shape, &grid = inputs[1].shape;
    if (input.rank() == 5 && interpolation_mode == Interpolation::kBicubic) {
      return InvalidArgument(
          "attribute 'interpolation_mode' is bicubic, which exists for 4-D input only; 'input' has shape ",
          ToString(input));
    }
    if (input[0] == 0 || input[1] == 0 || grid.NumElements() == 0) return Status::Ok();  // there is nothing to sample
    return CheckPlane("input", input, 2);
  }

  /// Pixels of a plane, whose extents begin at dimension `first`: at least one, and numbers of 32 bits.
  static Status CheckPlane(std::string_view name, const Shape& shape, int first) {
    int64_t pixels = 1;
    for (int d = first; d < shape.rank(); ++d) {
      if (shape[d] > 0 && pixels > (INT32_MAX - 1) / shape[d]) {
        return InvalidArgument("'", name, "' has shape ", ToString(shape), ": pixels of a plane must fit 32 bits");
      }
      pixels *= shape[d];
    }
    if (pixels > 0) return Status::Ok();
    return InvalidArgument("'", name, "' has shape ", ToString(shape), ": a plane without pixels cannot be sampled");
  }
};

/// What is the same for every sample of an axis.
struct GridAxis {
  GridRule::Padding padding;
  bool align_corners;
  int64_t extent;
  bool in_pixels = false;  // coordinates are pixels already
};

inline constexpr std::tuple kGridAttributes = {
    Attr("interpolation_mode", &GridRule::interpolation_mode, "how values between pixels are made")
        .Codes("bilinear", "nearest", "bicubic"),
    Attr("padding_mode", &GridRule::padding_mode, "what lies outside of the picture")
        .Codes("zeros", "border", "reflection"),
    Attr("align_corners", &GridRule::align_corners,
         "whether -1 and 1 are the outer pixels' centres or their outer edges"),
};

/// The pixels of a plane.
inline int64_t PlanePixels(const Shape& input) {
  int64_t pixels = 1;
  for (int d = 2; d < input.rank(); ++d) pixels *= input[d];
  return pixels;
}

}  // namespace polyop
