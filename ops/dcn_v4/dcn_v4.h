#pragma once

#include "core/operator.h"
#include "families/deform_conv/window_rule.h"

namespace polyop {

/// As dcn_v3, with offsets and masks side by side in one tensor.
struct DcnV4 : DeformWindowRule {
  static constexpr const char* kName = "dcn_v4";
  static constexpr Signature kSignature =
      "input: T[N, H, W, group*group_channels], "
      "offset_mask: T[N, OH = (H + 2*pad_h - dilation_h*(kernel_h - 1) - 1) / stride_h + 1, "
      "OW = (W + 2*pad_w - dilation_w*(kernel_w - 1) - 1) / stride_w + 1, CP] "
      "-> output: T[N, OH, OW, group*group_channels]";
  static constexpr NodeName kNodes[] = {"polyop::DCNv4"};
  static constexpr auto kAttributes = kDeformWindowAttributes;
  static constexpr Doc kDoc = {
      .summary = "As dcn_v3, with offsets and masks side by side in one tensor (DCNv4).",
      .semantics =
          "A pixel's row of offset_mask has 3P values for each group, where P = kernel_h * kernel_w - remove_center: "
          "2P "
          "offsets in pairs (x, y), then P masks. What is behind them is padding that nobody reads: the row is at "
          "least "
          "8 * ceil(3 * group * P / 8) long, else an error. There is no softmax. The rest is dcn_v3's: points are "
          "counted column by column, point p = i * kernel_h + j lies i * dilation_w to the right and j * dilation_h "
          "below the window's first, and offset_scale scales points and offsets about the window's middle. Any number "
          "of "
          "points, channels and pictures is taken.",
      .source =
          "Xiong et al., Efficient Deformable ConvNets: Rethinking Dynamic and Sparse Operator for Vision "
          "Applications, 2024; `DCNv4Function` of OpenGVLab/DCNv4",
      .differences =
          "The original takes windows of 8 and 9 points, groups of a multiple of 16 channels, and pixels that its "
          "blocks divide.",
  };

  /// Rows hold all offsets and masks, padded to a multiple of 8.
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const int64_t least = (3 * group * points() + 7) / 8 * 8;
    if (inputs[1].shape[3] >= least) return Status::Ok();
    return InvalidArgument("'offset_mask' has shape ", ToString(inputs[1].shape),
                           ", wanted at least 8 * ceil(3 * group * P / 8) = ", least, " for ", points(),
                           " points in dimension 3");
  }
};

}  // namespace polyop
