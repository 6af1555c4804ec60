#pragma once

#include "core/operator.h"
#include "families/resize/cubic.h"

namespace polyop {

/// Bicubic resizing to sizes that are known at run time, by any of the rules of ONNX's Resize.
struct CubicResize {
  enum class Transformation { kHalfPixel, kPytorchHalfPixel, kAlignCorners, kAsymmetric };
  Transformation coordinate_transformation_mode = Transformation::kHalfPixel;
  float cubic_coeff_a = -0.75f;
  bool exclude_outside = false;

  static constexpr const char* kName = "cubic_resize";
  static constexpr Signature kSignature = "input: T[N, C, H, W], sizes: i64[2] -> output: T[N, C, sizes[0], sizes[1]]";
  static constexpr NodeName kNodes[] = {"polyop::CubicResize"};
  static constexpr std::tuple kAttributes = {
      Attr("coordinate_transformation_mode", &CubicResize::coordinate_transformation_mode,
           "where pixel i lies in the input: half_pixel: at (i + 0.5) * step - 0.5; pytorch_half_pixel: the same, but "
           "at 0 where there is one pixel; asymmetric: at i * step; align_corners: the same, and the last pixels' "
           "centres stay where they are")
          .OneOf("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"),
      Attr("cubic_coeff_a", &CubicResize::cubic_coeff_a, "the kernel's a").Between(-1, 0),
      Attr("exclude_outside", &CubicResize::exclude_outside,
           "whether pixels outside have no weight, and those inside as much more; else the border repeats"),
  };
  static constexpr Doc kDoc = {
      .summary = "Bicubic resizing of pictures to sizes that are an input, by the rules of ONNX's Resize.",
      .semantics =
          "`sizes` are rows and columns of the result. The step from pixel to pixel is the ratio of the extents, with "
          "align_corners that of the extents less one. NaN and infinity spread to the 4 x 4 pixels that see them. No "
          "picture can be made of one that has no pixels.",
      .source =
          "ONNX's operators, Resize with mode cubic; R. Keys, Cubic Convolution Interpolation for Digital Image "
          "Processing, 1981",
      .differences =
          "ONNX Runtime finds coordinates in float32: at pixel 1,000 they are off by up to 6e-5 pixels. dynamic_resize "
          "takes scales, which it follows where extents times scales are no whole numbers.",
  };

  /// Sizes are not negative, and pixels are made of pixels.
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const auto* const sizes = static_cast<const int64_t*>(inputs[1].data);
    for (int i = 0; sizes != nullptr && i < 2; ++i) {
      if (sizes[i] < 0) return InvalidArgument("'sizes'[", i, "] is ", sizes[i], ", wanted 0 or more");
      if (sizes[i] > 0 && inputs[0].shape[2 + i] == 0) {
        return InvalidArgument("'sizes'[", i, "] is ", sizes[i], ", but 'input' has shape ", ToString(inputs[0].shape),
                               ": no pixel can be made of none");
      }
    }
    return Status::Ok();
  }

  /// How an axis is sampled.
  ResizeAxis Axis(int64_t inputs, int64_t outputs) const {
    ResizeAxis axis = coordinate_transformation_mode == Transformation::kAlignCorners
                          ? ResizeAxis::AlignedCorners(inputs, outputs)
                          : ResizeAxis::ByExtents(inputs, outputs);
    if (coordinate_transformation_mode == Transformation::kAsymmetric) axis.from_first = true;
    if (coordinate_transformation_mode == Transformation::kPytorchHalfPixel && outputs == 1) axis.from_first = true;
    axis.a = cubic_coeff_a;
    axis.exclude_outside = exclude_outside;
    return axis;
  }
};

}  // namespace polyop
