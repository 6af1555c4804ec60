#pragma once

#include <array>

#include "core/operator.h"

namespace polyop {

/// Correlation of two feature maps' windows.
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
      Attr("kernel_size", &Correlation::kernel_size, "rows and columns of a window; one value serves both")
          .Between(1, 1 << 10),
      Attr("max_displacement", &Correlation::max_displacement, "displacements to each side that are tried")
          .Between(0, 1 << 12),
      Attr("stride", &Correlation::stride, "pixels from one window of input1 to the next").Between(1, 1 << 20),
      Attr("padding", &Correlation::padding, "zeros around the pictures").Between(0, 1 << 20),
      Attr("dilation", &Correlation::dilation, "pixels from one point of a window to the next").Between(1, 1 << 20),
      Attr("dilation_patch", &Correlation::dilation_patch, "pixels from one displacement to the next")
          .Between(1, 1 << 20),
  };
  static constexpr Doc kDoc = {
      .summary = "How windows of one feature map match those of another at displaced places (FlowNet's cost volume).",
      .semantics =
          "output[n, i, j, y, x] is the sum over channels and over a window's points of input1 times input2 displaced "
          "by ((i - max_displacement) * dilation_patch[0], (j - max_displacement) * dilation_patch[1]) pixels, down "
          "and to the right. The point (a, b) of window (y, x) is pixel (y * stride[0] - padding[0] + a * dilation[0], "
          "x * stride[1] - padding[1] + b * dilation[1]); where it or its displaced one is outside of the picture, "
          "nothing is added. Sums are in float, in an order that depends on the instruction set but not on the "
          "threads. In PyTorch there are gradients by both inputs.",
      .source =
          "Dosovitskiy et al., FlowNet: Learning Optical Flow with Convolutional Networks, 2015; "
          "`mmcv.ops.Correlation`",
      .differences = "The gradient of MMCV's kernel leaves dilation_patch out; polyop's is that of what is computed.",
  };
};

}  // namespace polyop
