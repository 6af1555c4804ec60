// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/rois/roi_pool/roi_pool.h"

namespace polyop {

/// The gradient of RoiPool with respect to the feature map: the gradient of a bin belongs to the pixel that `argmax`
/// states, and to none if that is -1. Boxes have none, as in torchvision and MMCV.
struct RoiPoolBackward : GradientOf<RoiPool> {
  static constexpr const char* kName = "roi_pool_backward";
  static constexpr Signature kSignature =
      "grad_output: T[R, C, (output_height), (output_width)], input: T[N, C, H, W], rois: T[R, 5], "
      "argmax: i32[R, C, (output_height), (output_width)] -> grad_input: T[N, C, H, W]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return RoiPool::CheckInputs(inputs.subspan(1, 1)); }

  /// Checks that every element of `argmax` is -1 or the index of a pixel.
  static Status CheckArgmax(const Tensor<const int32_t, 4>& argmax, int64_t pixels) {
    for (int64_t i = 0; i < argmax.size(); ++i) {
      if (argmax[i] >= -1 && argmax[i] < pixels) continue;
      return InvalidArgument("'argmax'[", i, "]: expected -1 or a pixel in [0, ", pixels, "), got ", argmax[i]);
    }
    return Status::Ok();
  }
};

}  // namespace polyop
