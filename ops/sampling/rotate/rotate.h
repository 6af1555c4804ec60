// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/sampling/grid_rule.h"

namespace polyop {

/// Rotates an image about a point.
struct Rotate {
  enum class Interpolation { kBilinear, kNearest };
  Interpolation interpolation = Interpolation::kBilinear;

  static constexpr const char* kName = "rotate";
  static constexpr Signature kSignature = "img: T[C, H, W], angle: U[], center: U[2] -> output: T[C, H, W]";
  static constexpr NodeName kNodes[] = {"polyop::RotateTRT", "polyop::RotateTRT2", "polyop::RotatePlugin",
                                        "::RotateTRT",       "::RotateTRT2",       "::RotatePlugin"};
  static constexpr std::tuple kAttributes = {
      Attr("interpolation", &Rotate::interpolation, "how to interpolate between pixels").Codes("bilinear", "nearest"),
  };
  static constexpr Doc kDoc = {
      .summary = "Rotates an image about a point. The size is kept, and pixels from outside the image are 0.",
      .semantics = R"(The angle is in degrees, counter-clockwise. center is (x, y) in pixels from the upper left
          corner; the centre of pixel (0, 0) is (0.5, 0.5). Both have the type of the image or f32. `nearest` rounds
          halves to even. Positions are computed in double precision. If the angle or the center is NaN or infinite,
          the output is 0.)",
      .source = R"(`torchvision.transforms.functional.rotate`; RotateTRT of BEVFormer_tensorrt, RotatePlugin of
          autoware_tensorrt_plugins)",
      .differences = "torch computes positions in the type of the image, so in fp16 they are off by up to a pixel.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape& img = inputs[0].shape;
    return img.NumElements() == 0 ? Status::Ok() : GridRule::CheckPlane("img", img, 1);
  }

  /// The equivalent parameters of grid sampling.
  GridRule Rule() const {
    const bool nearest = interpolation == Interpolation::kNearest;
    return {nearest ? GridRule::Interpolation::kNearest : GridRule::Interpolation::kBilinear};
  }
};

}  // namespace polyop
