// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "core/operator.h"

namespace polyop {

/// Content-aware upsampling: each output pixel is a sum over the window of its input pixel, weighted by its own
/// kernel.
struct Carafe {
  int64_t kernel_size = 1;
  int64_t group_size = 1;
  float scale_factor = 1.0f;

  static constexpr const char* kName = "carafe";
  static constexpr Signature kSignature =
      "features: T[N, C, H, W], masks: T[N, kernel_size*kernel_size*group_size, floor(H*scale_factor), "
      "floor(W*scale_factor)] -> output: T[N, C, floor(H*scale_factor), floor(W*scale_factor)]";
  static constexpr NodeName kNodes[] = {"mmcv::MMCVCARAFE", "mmcv::MMCVCARAFENaive"};
  static constexpr std::tuple kAttributes = {
      Attr("kernel_size", &Carafe::kernel_size, "rows and columns of the window; an odd number")
          .Between(1, 255)
          .Required(),
      Attr("group_size", &Carafe::group_size, "number of channel groups, each with its own masks").AtLeast(1),
      Attr("scale_factor", &Carafe::scale_factor, "output pixels per input pixel; an integer")
          .Between(1, 1024)
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary = R"(Upsamples by a weighted sum over the window around each pixel, with one kernel per output pixel
          (CARAFE).)",
      .semantics = R"(Output pixel (y, x) of channel c is the sum over the kernel_size x kernel_size window around input
          pixel (y / scale_factor, x / scale_factor) of features times masks. Window position (iy, ix) uses mask channel
          (g * kernel_size + iy) * kernel_size + ix, where g = c / (C / group_size). Positions outside of the image are
          skipped, and the remaining masks are not normalised again; a softmax, if any, is a separate node of the graph.
          Accumulates in fp32.)",
      .source = "Wang et al., CARAFE: Content-Aware ReAssembly of FEatures, 2019; `mmcv.ops.carafe`",
      .differences = "none known",
  };

  Status Check() const {
    if (kernel_size % 2 == 0)
      return InvalidArgument("attribute 'kernel_size': expected an odd number, got ", kernel_size);
    if (scale_factor == std::floor(scale_factor)) return Status::Ok();
    return InvalidArgument("attribute 'scale_factor': expected an integer, got ", scale_factor);
  }
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const int64_t channels = inputs[0].shape[1];
    if (channels % group_size == 0) return Status::Ok();
    return InvalidArgument("'features': expected a number of channels divisible by group_size = ", group_size, ", got ",
                           channels);
  }
};

}  // namespace polyop
