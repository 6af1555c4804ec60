// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/deform/dcn_window_rule.h"

namespace polyop {

/// InternImage's deformable convolution: samples shifted by offsets and weighted by masks, channels last.
struct DcnV3 : DcnWindowRule {
  static constexpr const char* kName = "dcn_v3";
  static constexpr Signature kSignature =
      "input: T[N, H, W, group*group_channels], "
      "offset: T[N, OH = (H + 2*pad_h - dilation_h*(kernel_h - 1) - 1) / stride_h + 1, "
      "OW = (W + 2*pad_w - dilation_w*(kernel_w - 1) - 1) / stride_w + 1, "
      "group*(kernel_h*kernel_w - remove_center)*2], "
      "mask: T[N, OH, OW, group*(kernel_h*kernel_w - remove_center)] -> output: T[N, OH, OW, group*group_channels]";
  static constexpr NodeName kNodes[] = {"mmdeploy::TRTDCNv3"};
  static constexpr auto kAttributes = kDcnWindowAttributes;
  static constexpr Doc kDoc = {
      .summary = "Sums samples that are shifted by offsets and weighted by masks, channels last (InternImage).",
      .semantics = kDcnWindowSemantics,
      .source = R"(Wang et al., InternImage: Exploring Large-Scale Vision Foundation Models with Deformable
          Convolutions, 2023; `DCNv3Function` of OpenGVLab/InternImage)",
      .differences = R"(The attribute `im2col_step` has no effect. InternImage's TensorRT plugin supports fp32 only and
          not `remove_center`, declares an output that is too small by one for some strides, and never writes the images
          after the last full `im2col_step`; its PyTorch reference pads the width with pad_h and the height with
          pad_w.)",
  };
};

}  // namespace polyop
