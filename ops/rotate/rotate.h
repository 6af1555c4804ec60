#pragma once

#include "core/operator.h"
#include "families/sampling/grid_rule.h"

namespace polyop {

/// A picture turned about a point.
struct Rotate {
  enum class Interpolation { kBilinear, kNearest };
  Interpolation interpolation = Interpolation::kBilinear;

  static constexpr const char* kName = "rotate";
  static constexpr Signature kSignature = "img: T[C, H, W], angle: U[], center: U[2] -> output: T[C, H, W]";
  static constexpr NodeName kNodes[] = {"polyop::RotateTRT", "polyop::RotateTRT2", "polyop::RotatePlugin",
                                        "::RotateTRT",       "::RotateTRT2",       "::RotatePlugin"};
  static constexpr std::tuple kAttributes = {
      Attr("interpolation", &Rotate::interpolation, "how values between pixels are made").Codes("bilinear", "nearest"),
  };
  static constexpr Doc kDoc = {
      .summary = "Turns a picture about a point, and keeps its size; what comes from outside is 0.",
      .semantics =
          "The angle is in degrees, counter-clockwise; center is (x, y) in pixels from the upper left corner, where "
          "pixel (0, 0) has its centre at (0.5, 0.5). Both are of the picture's type or f32. `nearest` rounds halves "
          "to "
          "even. Positions are computed in double precision. With an angle or a center that is NaN or infinite, all "
          "is 0.",
      .source =
          "`torchvision.transforms.functional.rotate`; RotateTRT of BEVFormer_tensorrt, RotatePlugin of "
          "autoware_tensorrt_plugins",
      .differences = "torch computes positions in the picture's type, so that they are off by up to a pixel in fp16.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape& img = inputs[0].shape;
    return img.NumElements() == 0 ? Status::Ok() : GridRule::CheckPlane("img", img, 1);
  }

  /// How pictures are sampled.
  GridRule Rule() const {
    const bool nearest = interpolation == Interpolation::kNearest;
    return {nearest ? GridRule::Interpolation::kNearest : GridRule::Interpolation::kBilinear};
  }
};

}  // namespace polyop
