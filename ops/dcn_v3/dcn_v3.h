#pragma once

#include "core/operator.h"
#include "families/deform_conv/window_rule.h"

namespace polyop {

/// InternImage's deformable convolution: samples shifted by offsets and weighted by masks, channels last.
struct DcnV3 : DeformWindowRule {
  static constexpr const char* kName = "dcn_v3";
  static constexpr Signature kSignature =
      "input: T[N, H, W, group*group_channels], "
      "offset: T[N, OH = (H + 2*pad_h - dilation_h*(kernel_h - 1) - 1) / stride_h + 1, "
      "OW = (W + 2*pad_w - dilation_w*(kernel_w - 1) - 1) / stride_w + 1, "
      "group*(kernel_h*kernel_w - remove_center)*2], "
      "mask: T[N, OH, OW, group*(kernel_h*kernel_w - remove_center)] -> output: T[N, OH, OW, group*group_channels]";
  static constexpr NodeName kNodes[] = {"mmdeploy::TRTDCNv3"};
  static constexpr auto kAttributes = kDeformWindowAttributes;
  static constexpr Doc kDoc = {
      .summary = "Sums of samples that are shifted by offsets and weighted by masks, channels last (InternImage).",
      .semantics = kDeformWindowSemantics,
      .source =
          "Wang et al., InternImage: Exploring Large-Scale Vision Foundation Models with Deformable Convolutions, "
          "2023; `DCNv3Function` of OpenGVLab/InternImage",
      .differences =
          "The attribute im2col_step is without effect. InternImage's TensorRT plugin knows float and no "
          "remove_center, "
          "declares an output one short for some strides, and never writes the pictures behind the last full "
          "im2col_step; its reference in torch pads the width with pad_h and the height with pad_w.",
  };
};

}  // namespace polyop
