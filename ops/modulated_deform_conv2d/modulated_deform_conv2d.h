#pragma once

#include <array>

#include "core/operator.h"

namespace polyop {

/// Deformable convolution v2: samples are shifted by offsets and scaled by a mask.
struct ModulatedDeformConv2d {
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};
  std::array<int64_t, 2> dilation = {1, 1};
  int64_t groups = 1;
  int64_t deform_groups = 1;

  static constexpr const char* kName = "modulated_deform_conv2d";
  static constexpr Signature kSignature =
      "input: T[N, C, H, W], "
      "offset: T[N, 2*deform_groups*KH*KW, OH = (H + 2*padding[0] - dilation[0]*(KH - 1) - 1) / stride[0] + 1, "
      "OW = (W + 2*padding[1] - dilation[1]*(KW - 1) - 1) / stride[1] + 1], "
      "mask: T[N, deform_groups*KH*KW, OH, OW], "
      "weight: T[O, C/groups, KH, KW], bias?: T[O] -> output: T[N, O, OH, OW]";
  static constexpr NodeName kNodes[] = {"mmcv::MMCVModulatedDeformConv2d", "mmdeploy::MMCVModulatedDeformConv2d"};
  static constexpr std::tuple kAttributes = {
      Attr("stride", &ModulatedDeformConv2d::stride,
           "steps of the filter, vertical and horizontal; one value serves both")
          .Between(1, 1 << 20),
      Attr("padding", &ModulatedDeformConv2d::padding, "zeros around the picture").Between(0, 1 << 20),
      Attr("dilation", &ModulatedDeformConv2d::dilation, "steps between a filter's points").Between(1, 1 << 20),
      Attr("groups", &ModulatedDeformConv2d::groups, "groups of channels that are convolved apart")
          .AtLeast(1)
          .Also("group"),
      Attr("deform_groups", &ModulatedDeformConv2d::deform_groups, "groups of channels that share offsets")
          .AtLeast(1)
          .Also("deformable_groups", "deformable_group", "deform_group"),
  };
  static constexpr Doc kDoc = {
      .summary = "Convolution whose samples are shifted by offsets and scaled by a mask (v2).",
      .semantics =
          "Offsets come in pairs (y, x), point by point, deform group by deform group. A sample outside of the picture "
          "by a pixel or more is "
          "0; corners outside count as 0. Channel c belongs to deform group c / (C / deform_groups), whatever `groups` "
          "is; any number of "
          "groups that divides channels and filters is possible, depthwise convolution too. A NaN or infinite offset "
          "samples 0. Sums "
          "are in float, in an order that depends on the instruction set but not on the threads.",
      .source = "Zhu et al., Deformable ConvNets v2, 2019; `torchvision.ops.deform_conv2d`",
      .differences =
          "MMCV and MMDeploy restart the deform groups in each group, and fail for depthwise convolutions; MMDeploy's "
          "result is wrong when "
          "C / groups * KH * KW is not a multiple of 8.",
  };
};

}  // namespace polyop
