#pragma once

#include "core/operator.h"
#include "families/resize/cubic.h"

namespace polyop {

/// Bicubic resizing to sizes given at run time, with all coordinate transformations of ONNX's Resize.
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
           R"(position of pixel i in the input. half_pixel: (i + 0.5) * step - 0.5; pytorch_half_pixel: like half_pixel,
           but 0 if the output has one pixel; asymmetric: i * step; align_corners: like asymmetric, with a step that
           aligns the centres of the last pixels)")
          .OneOf("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"),
      Attr("cubic_coeff_a", &CubicResize::cubic_coeff_a, "coefficient a of the cubic kernel").Between(-1, 0),
      Attr("exclude_outside", &CubicResize::exclude_outside,
           "true: pixels outside have weight 0 and the other weights are normalised; false: borders are replicated"),
  };
  static constexpr Doc kDoc = {
      .summary = R"(Resizes images with bicubic interpolation to sizes given by an input, with the rules of ONNX's
          Resize.)",
      .semantics = R"(`sizes` holds the rows and columns of the result. The step between pixels is the ratio of the
          extents; with align_corners, the ratio of the extents minus one. NaN and infinity spread to every output pixel
          whose 4 x 4 window contains them. An input without pixels cannot be resized to an output with pixels: this is
          an error.)",
      .source = R"(ONNX's operators, Resize with mode cubic; R. Keys, Cubic Convolution Interpolation for Digital Image
          Processing, 1981)",
      .differences = R"(ONNX Runtime computes coordinates in fp32: at pixel 1,000 they are off by up to 6e-5 pixels.
          `dynamic_resize` takes scales, and uses them exactly even if extents times scales are not integers.)",
  };

  /// Returns an error if a size is negative, or positive where the input is empty.
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const auto* const sizes = static_cast<const int64_t*>(inputs[1].data);
    for (int i = 0; sizes != nullptr && i < 2; ++i) {
      if (sizes[i] < 0) return InvalidArgument("'sizes'[", i, "]: expected 0 or more, got ", sizes[i]);
      if (sizes[i] > 0 && inputs[0].shape[2 + i] == 0) {
        return InvalidArgument("'sizes'[", i, "]: expected 0, because 'input' has no pixels (shape ",
                               ToString(inputs[0].shape), "), got ", sizes[i]);
      }
    }
    return Status::Ok();
  }

  /// Returns the sampling of an axis.
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
