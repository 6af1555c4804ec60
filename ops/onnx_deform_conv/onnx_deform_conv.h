#pragma once

#include "core/operator.h"
#include "families/deform_conv/deform_conv_rule.h"

namespace polyop {

/// ONNX's DeformConv for images.
struct OnnxDeformConv {
  std::array<int64_t, 2> dilations = {1, 1};
  int64_t group = 1;
  std::array<int64_t, 2> kernel_shape = {0, 0};
  int64_t offset_group = 1;
  std::array<int64_t, 4> pads = {0, 0, 0, 0};
  std::array<int64_t, 2> strides = {1, 1};

  static constexpr const char* kName = "onnx_deform_conv";
  static constexpr Signature kSignature =
      "X: T[N, C, H, W], W: T[O, C/group, KH, KW], offset: T[N, 2*offset_group*KH*KW, "
      "OH = (H + pads[0] + pads[2] - dilations[0]*(KH - 1) - 1) / strides[0] + 1, "
      "OW = (W + pads[1] + pads[3] - dilations[1]*(KW - 1) - 1) / strides[1] + 1], "
      "B?: T[O], mask?: T[N, offset_group*KH*KW, OH, OW] -> Y: T[N, O, OH, OW]";
  static constexpr NodeName kNodes[] = {NodeName("polyop::DeformConv").Mirror(19).Mirror(22)};
  static constexpr std::tuple kAttributes = {
      Attr("dilations", &OnnxDeformConv::dilations, "distances between the points of the filter along y and x")
          .Between(1, 1 << 20),
      Attr("group", &OnnxDeformConv::group, "number of groups of channels that are convolved separately").AtLeast(1),
      Attr("kernel_shape", &OnnxDeformConv::kernel_shape, "extents of the filter; 0: those of W").Between(0, 1 << 20),
      Attr("offset_group", &OnnxDeformConv::offset_group, "number of groups of channels that share offsets").AtLeast(1),
      Attr("pads", &OnnxDeformConv::pads, "zero padding above, left of, below and right of the image")
          .Between(0, 1 << 20),
      Attr("strides", &OnnxDeformConv::strides, "strides of the filter along y and x").Between(1, 1 << 20),
  };
  static constexpr Doc kDoc = {
      .summary = "ONNX's DeformConv: a convolution whose samples are shifted by offsets and scaled by a mask.",
      .semantics = kDeformConvSemantics,
      .source =
          "ONNX's operators, DeformConv of opsets 19 and 22; Zhu et al., Deformable ConvNets v2, 2019; "
          "`torchvision.ops.deform_conv2d`",
      .differences = "Only images: ONNX allows any number of spatial dimensions.",
  };

  /// The equivalent parameters of the deformable convolution.
  DeformConvRule Rule() const { return {strides, {pads[0], pads[1]}, dilations, group, offset_group}; }

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    for (int axis = 0; axis < 2; ++axis) {
      const int64_t given = kernel_shape[static_cast<size_t>(axis)], extent = inputs[1].shape[2 + axis];
      if (given != 0 && given != extent) {
        return InvalidArgument("'kernel_shape'[", axis, "]: expected the extent ", extent, " of 'W', got ", given);
      }
    }
    return Rule().CheckGroups(inputs[0], inputs[1], {"X", "W", "group", "offset_group"});
  }
};

}  // namespace polyop
