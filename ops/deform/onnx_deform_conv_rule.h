// SPDX-License-Identifier: Apache-2.0
// Attributes and checks shared by the operators with the attributes of ONNX's DeformConv.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "core/definition.h"
#include "core/status.h"
#include "ops/deform/deform_conv_rule.h"

namespace polyop {

/// The base of an operator's parameters.
struct OnnxDeformConvRule {
  std::array<int64_t, 2> dilations = {1, 1};
  int64_t group = 1;
  std::array<int64_t, 2> kernel_shape = {0, 0};
  int64_t offset_group = 1;
  std::array<int64_t, 4> pads = {0, 0, 0, 0};
  std::array<int64_t, 2> strides = {1, 1};

  /// The equivalent parameters of the deformable convolution.
  DeformConvRule Rule() const { return {strides, {pads[0], pads[1]}, dilations, group, offset_group}; }

  /// Checks the extents of the filters and that groups divide channels and filters.
  Status CheckConvolution(const AnyTensor& x, const AnyTensor& w) const {
    for (int axis = 0; axis < 2; ++axis) {
      const int64_t given = kernel_shape[static_cast<size_t>(axis)], extent = w.shape[2 + axis];
      if (given != 0 && given != extent) {
        return InvalidArgument("'kernel_shape'[", axis, "]: expected the extent ", extent, " of 'W', got ", given);
      }
    }
    return Rule().CheckGroups(x, w, {"X", "W", "group", "offset_group"});
  }
};

inline constexpr std::tuple kOnnxDeformConvAttributes = {
    Attr("dilations", &OnnxDeformConvRule::dilations, "distances between the points of the filter along y and x")
        .Between(1, 1 << 20),
    Attr("group", &OnnxDeformConvRule::group, "number of groups of channels that are convolved separately").AtLeast(1),
    Attr("kernel_shape", &OnnxDeformConvRule::kernel_shape, "extents of the filter; 0: those of W").Between(0, 1 << 20),
    Attr("offset_group", &OnnxDeformConvRule::offset_group, "number of groups of channels that share offsets")
        .AtLeast(1),
    Attr("pads", &OnnxDeformConvRule::pads, "zero padding above, left of, below and right of the image")
        .Between(0, 1 << 20),
    Attr("strides", &OnnxDeformConvRule::strides, "strides of the filter along y and x").Between(1, 1 << 20),
};

}  // namespace polyop
