#pragma once

#include <array>

#include "core/operator.h"

namespace polyop {

/// Deformable convolution v1: samples are shifted by offsets.
struct DeformConv2d {
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};
  std::array<int64_t, 2> dilation = {1, 1};
  int64_t groups = 1;
  int64_t deform_groups = 1;

  static constexpr const char* kName = "deform_conv2d";
  static constexpr Signature kSignature =
      "input: T[N, C, H, W], "
      "offset: T[N, 2*deform_groups*KH*KW, OH = (H + 2*padding[0] - dilation[0]*(KH - 1) - 1) / stride[0] + 1, "
      "OW = (W + 2*padding[1] - dilation[1]*(KW - 1) - 1) / stride[1] + 1], "
      "weight: T[O, C/groups, KH, KW] -> output: T[N, O, OH, OW]";
  static constexpr NodeName kNodes[] = {"mmcv::MMCVDeformConv2d", "mmdeploy::MMCVDeformConv2d"};
  static constexpr std::tuple kAttributes = {
      Attr("stride", &DeformConv2d::stride, "steps of the filter, vertical and horizontal; one value serves both")
          .Between(1, 1 << 20),
      Attr("padding", &DeformConv2d::padding, "zeros around the picture").Between(0, 1 << 20),
      Attr("dilation", &DeformConv2d::dilation, "steps between a filter's points").Between(1, 1 << 20),
      Attr("groups", &DeformConv2d::groups, "groups of channels that are convolved apart").AtLeast(1).Also("group"),
      Attr("deform_groups", &DeformConv2d::deform_groups, "groups of channels that share offsets")
          .AtLeast(1)
          .Also("deformable_groups", "deformable_group", "deform_group"),
  };
  static constexpr Doc kDoc = {
      .summary = "Convolution whose samples are shifted by offsets (v1).",
      .semantics =
          "Offsets come in pairs (y, x), point by point, deform group by deform group. A sample outside of the picture "
          "by a pixel or more is "
          "0; corners outside count as 0. Channel c belongs to deform group c / (C / deform_groups), whatever `groups` "
          "is; any number of "
          "groups that divides channels and filters is possible, depthwise convolution too. A NaN or infinite offset "
          "samples 0. Sums "
          "are in float, in an order that depends on the instruction set but not on the threads.",
      .source = "Dai et al., Deformable Convolutional Networks, 2017; `torchvision.ops.deform_conv2d`",
      .differences =
          "MMCV and MMDeploy restart the deform groups in each group, and fail for depthwise convolutions; MMDeploy's "
          "result is wrong when "
          "C / groups * KH * KW is not a multiple of 8. The attributes im2col_step and bias, which MMCV writes, are "
          "without effect.",
  };
};

}  // namespace polyop
