#pragma once

#include "core/operator.h"

namespace polyop {

/// Bicubic enlargement or reduction by scales that are known at run time.
struct DynamicResize {
  static constexpr const char* kName = "dynamic_resize";
  static constexpr Signature kSignature =
      "input: T[N, C, H, W], scales: f32[4] -> output: T[N, C, floor(H*scales[2]), floor(W*scales[3])]";
  static constexpr NodeName kNodes[] = {"Just_A_Scope_Name::DynamicTRTResize", "custom::DynamicTRTResize"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Bicubic resizing of pictures by scales that are an input.",
      .semantics =
          "`scales` is (1, 1, vertical, horizontal); the two last are positive. The coordinates follow the scales "
          "as given, not the ratio of the rounded extents, pixel centres are at k + 0.5, the kernel has a = -0.75, "
          "and the border repeats. NaN and infinity spread to the 4 x 4 pixels that see them. An extent that "
          "rounds down to 0 gives an empty output.",
      .source =
          "`torch.nn.functional.interpolate(input, scale_factor=..., mode='bicubic', align_corners=False)`; "
          "R. Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981",
      .differences = "ONNX Runtime's Resize (mode cubic, half_pixel, cubic_coeff_a -0.75) gives the same values.",
  };

  /// The scales of batch and channels are 1, those of rows and columns positive.
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const auto* const scales = static_cast<const float*>(inputs[1].data);
    for (int i = 0; scales != nullptr && i < 4; ++i) {
      if (i < 2 ? scales[i] == 1.0f : scales[i] > 0) continue;
      return InvalidArgument("'scales'[", i, "] is ", scales[i],
                             i < 2 ? ", wanted 1 (batch and channels)" : ", wanted a positive number");
    }
    return Status::Ok();
  }
};

}  // namespace polyop
