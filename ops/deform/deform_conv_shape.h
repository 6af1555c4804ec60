// SPDX-License-Identifier: Apache-2.0
// The extents of a deformable convolution, and the positions of its samples.
#pragma once

#include <cstdint>

#include "core/tensor.h"
#include "ops/deform/deform_conv_rule.h"

namespace polyop {

/// All extents of one call.
struct DeformConvShape {
  int64_t batch, channels, height, width, outputs, kernel_height, kernel_width, out_height, out_width;
  int64_t stride[2], padding[2], dilation[2], groups, deform_groups;

  static DeformConvShape Of(const DeformConvRule& op, const Shape& input, const Shape& weight, const Shape& output) {
    return {input[0],
            input[1],
            input[2],
            input[3],
            weight[0],
            weight[2],
            weight[3],
            output[2],
            output[3],
            {op.stride[0], op.stride[1]},
            {op.padding[0], op.padding[1]},
            {op.dilation[0], op.dilation[1]},
            op.groups,
            op.deform_groups};
  }

  int64_t points() const { return kernel_height * kernel_width; }
  int64_t out_pixels() const { return out_height * out_width; }
  int64_t pixels() const { return height * width; }
  int64_t deform_channels() const { return channels / deform_groups; }
  int64_t group_channels() const { return channels / groups; }
  int64_t group_outputs() const { return outputs / groups; }
  int64_t depth() const { return group_channels() * points(); }

  /// Returns the row and the column of point k of the kernel for an output pixel, before its offset is added.
  float Row(int64_t out_row, int64_t k) const {
    return static_cast<float>(out_row * stride[0] - padding[0] + k / kernel_width * dilation[0]);
  }
  float Column(int64_t out_column, int64_t k) const {
    return static_cast<float>(out_column * stride[1] - padding[1] + k % kernel_width * dilation[1]);
  }
};

}  // namespace polyop
