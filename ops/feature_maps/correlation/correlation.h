// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "core/operator.h"

namespace polyop {

/// Correlates windows of two feature maps.
struct Correlation {
  std::array<int64_t, 2> kernel_size = {1, 1};
  int64_t max_displacement = 1;
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};
  std::array<int64_t, 2> dilation = {1, 1};
  std::array<int64_t, 2> dilation_patch = {1, 1};

  static constexpr const char* kName = "correlation";
  static constexpr Signature kSignature =
      "input1: T[N, C, H, W], input2: T[N, C, H, W] -> output: T[N, 2*max_displacement + 1, 2*max_displacement + 1, "
      "(H + 2*padding[0] - dilation[0]*(kernel_size[0] - 1) - 1) / stride[0] + 1, "
      "(W + 2*padding[1] - dilation[1]*(kernel_size[1] - 1) - 1) / stride[1] + 1]";
  static constexpr NodeName kNodes[] = {"polyop::Correlation"};
  static constexpr std::tuple kAttributes = {
      Attr("kernel_size", &Correlation::kernel_size, "rows and columns of a window; a single value applies to both")
          .Between(1, 1 << 10),
      Attr("max_displacement", &Correlation::max_displacement, "number of displacements tried in each direction")
          .Between(0, 1 << 12),
      Attr("stride", &Correlation::stride, "distance in pixels between windows of input1").Between(1, 1 << 20),
      Attr("padding", &Correlation::padding, "zero padding around the images").Between(0, 1 << 20),
      Attr("dilation", &Correlation::dilation, "distance in pixels between points of a window").Between(1, 1 << 20),
      Attr("dilation_patch", &Correlation::dilation_patch, "distance in pixels between displacements")
          .Between(1, 1 << 20),
  };
  static constexpr Doc kDoc = {
      .summary = "Correlates windows of one feature map with displaced windows of another (FlowNet's cost volume).",
      .semantics = R"(output[n, i, j, y, x] is the sum over channels and over a window's points of input1 times input2
          displaced by ((i - max_displacement) * dilation_patch[0], (j - max_displacement) * dilation_patch[1]) pixels,
          down and to the right. Point (a, b) of window (y, x) is pixel (y * stride[0] - padding[0] + a * dilation[0], x
          * stride[1] - padding[1] + b * dilation[1]); it is skipped if it or its displaced counterpart is outside of
          the image. Accumulates in fp32, in an order that depends on the instruction set but not on the threads. In
          PyTorch, differentiable with respect to both inputs.)",
      .source = R"(Dosovitskiy et al., FlowNet: Learning Optical Flow with Convolutional Networks, 2015;
          `mmcv.ops.Correlation`)",
      .differences = R"(The gradient of MMCV's kernel ignores `dilation_patch`; polyop's is the gradient of the computed
          function.)",
  };
};

}  // namespace polyop
