#pragma once

#include <cmath>

#include "core/operator.h"

namespace polyop {

/// Content-aware upsampling: each output pixel weighs the window around its input pixel by a kernel of its own.
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
      Attr("kernel_size", &Carafe::kernel_size, "rows and columns of the window, odd").Between(1, 255).Required(),
      Attr("group_size", &Carafe::group_size, "groups of channels, each with masks of its own").AtLeast(1),
      Attr("scale_factor", &Carafe::scale_factor, "output pixels to an input pixel, a whole number")
          .Between(1, 1024)
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary = "Upsamples by weighing the window around a pixel with a kernel for each output pixel (CARAFE).",
      .semantics =
          "Output pixel (y, x) of channel c is the sum over the kernel_size x kernel_size window around input pixel (y "
          "/ "
          "scale_factor, x / scale_factor) of features times masks; place (iy, ix) of the window has mask channel (g * "
          "kernel_size + iy) * kernel_size + ix, where g = c / (C / group_size). Places outside of the picture are "
          "left "
          "out, and the other masks are as they were; a softmax, if any, is in the graph. Sums are in float.",
      .source = "Wang et al., CARAFE: Content-Aware ReAssembly of FEatures, 2019; `mmcv.ops.carafe`",
      .differences = "none known",
  };

  Status Check() const {
    if (kernel_size % 2 == 0) return InvalidArgument("attribute 'kernel_size' is ", kernel_size, ", wanted an odd one");
    if (scale_factor == std::floor(scale_factor)) return Status::Ok();
    return InvalidArgument("attribute 'scale_factor' is ", scale_factor, ", wanted a whole number");
  }
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const int64_t channels = inputs[0].shape[1];
    if (channels % group_size == 0) return Status::Ok();
    return InvalidArgument("'features' has ", channels,
                           " channels, wanted a number divisible by group_size = ", group_size);
  }
};

}  // namespace polyop
