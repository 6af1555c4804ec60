// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/deform/dcn_window_rule.h"

namespace polyop {

/// Like dcn_v3, with offsets and masks packed into one tensor.
struct DcnV4 : DcnWindowRule {
  static constexpr const char* kName = "dcn_v4";
  static constexpr Signature kSignature =
      "input: T[N, H, W, group*group_channels], "
      "offset_mask: T[N, OH = (H + 2*pad_h - dilation_h*(kernel_h - 1) - 1) / stride_h + 1, "
      "OW = (W + 2*pad_w - dilation_w*(kernel_w - 1) - 1) / stride_w + 1, CP] "
      "-> output: T[N, OH, OW, group*group_channels]";
  static constexpr NodeName kNodes[] = {"polyop::DCNv4"};
  static constexpr auto kAttributes = kDcnWindowAttributes;
  static constexpr Doc kDoc = {
      .summary = "Like `dcn_v3`, with offsets and masks packed into one tensor (DCNv4).",
      .semantics = R"(A pixel's row of `offset_mask` has 3P values for each group, where P = kernel_h * kernel_w -
          remove_center: P offsets (x, y), followed by P masks. The values after the last group are padding and ignored;
          a row must have at least 8 * ceil(3 * group * P / 8) values. There is no softmax. Otherwise the rules of
          `dcn_v3` apply: points are numbered column by column, point p = i * kernel_h + j is i * dilation_w to the
          right of and j * dilation_h below the window's first point, and offset_scale scales points and offsets about
          the window's centre. Any number of points, channels and images is supported.)",
      .source = R"(Xiong et al., Efficient Deformable ConvNets: Rethinking Dynamic and Sparse Operator for Vision
          Applications, 2024; `DCNv4Function` of OpenGVLab/DCNv4)",
      .differences = R"(The original supports windows of 8 and 9 points only, requires a multiple of 16 channels per
          group, and a number of pixels that is divisible by its block size.)",
  };

  /// Returns an error unless rows hold all offsets and masks, padded to a multiple of 8.
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const int64_t min_row = (3 * group * points() + 7) / 8 * 8;
    if (inputs[1].shape[3] >= min_row) return Status::Ok();
    return InvalidArgument("'offset_mask': expected at least 8 * ceil(3 * group * P / 8) = ", min_row,
                           " in dimension 3 for ", points(), " points, got ", inputs[1].shape[3], " (shape ",
                           ToString(inputs[1].shape), ")");
  }
};

}  // namespace polyop
