// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Bicubic resizing by scales given at run time.
struct DynamicResize {
  static constexpr const char* kName = "dynamic_resize";
  static constexpr Signature kSignature =
      "input: T[N, C, H, W], scales: f32[4] -> output: T[N, C, floor(H*scales[2]), floor(W*scales[3])]";
  static constexpr NodeName kNodes[] = {"Just_A_Scope_Name::DynamicTRTResize", "custom::DynamicTRTResize"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Resizes images with bicubic interpolation by scales given by an input.",
      .semantics = R"(`scales` is (1, 1, vertical, horizontal); the last two are positive. Coordinates are derived from
          the scales as given, not from the ratio of the rounded extents. Pixel centres are at k + 0.5, the cubic kernel
          has a = -0.75, and borders are replicated. NaN and infinity spread to every output pixel whose 4 x 4 window
          contains them. An extent that rounds down to 0 gives an empty output.)",
      .source = R"(`torch.nn.functional.interpolate(input, scale_factor=..., mode='bicubic', align_corners=False)`; R.
          Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981)",
      .differences = "ONNX Runtime's Resize (mode cubic, half_pixel, cubic_coeff_a -0.75) returns the same values.",
  };

  /// Returns an error unless the scales of batch and channels are 1 and those of rows and columns positive.
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const auto* const scales = static_cast<const float*>(inputs[1].data);
    for (int i = 0; scales != nullptr && i < 4; ++i) {
      if (i < 2 ? scales[i] == 1.0f : scales[i] > 0) continue;
      return InvalidArgument("'scales'[", i, "]: expected ", i < 2 ? "1 (batch and channels)" : "a positive number",
                             ", got ", scales[i]);
    }
    return Status::Ok();
  }
};

}  // namespace polyop
