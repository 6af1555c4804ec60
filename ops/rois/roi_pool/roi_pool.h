// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// RoI max pooling: the largest pixel of each bin of a box.
struct RoiPool {
  int64_t output_height = 1;
  int64_t output_width = 1;
  float spatial_scale = 1.0f;
  bool rounded = true;

  static constexpr const char* kName = "roi_pool";
  static constexpr Signature kSignature =
      "input: T[N, C, H, W], rois: T[R, 5] -> output: T[R, C, output_height, output_width], "
      "argmax: i32[R, C, output_height, output_width]";
  static constexpr NodeName kNodes[] = {
      NodeName("polyop::RoIPool"),
      NodeName("mmcv::MMCVRoIPool").Preset("rounded", "0"),
  };
  static constexpr std::tuple kAttributes = {
      Attr("output_height", &RoiPool::output_height, "number of bins along the y axis")
          .Between(1, 4096)
          .Also("pooled_height"),
      Attr("output_width", &RoiPool::output_width, "number of bins along the x axis")
          .Between(1, 4096)
          .Also("pooled_width"),
      Attr("spatial_scale", &RoiPool::spatial_scale, "scale from box coordinates to pixels of the input")
          .GreaterThan(0),
      Attr("rounded", &RoiPool::rounded, "1: round scaled corners to integers, as in torchvision; 0: do not"),
  };
  static constexpr Doc kDoc = {
      .summary = "RoI max pooling: pools each box to a fixed grid by the largest pixel of each bin (Fast R-CNN).",
      .semantics = R"(A RoI is (batch index, x1, y1, x2, y2), where (x2, y2) is its last pixel. If rounded is 1,
          both corners are scaled and rounded, with halves rounded away from zero, and a box is at least one pixel
          wide and high. If it is 0, a box extends from x1 * scale to (x2 + 1) * scale, and a box without extent has
          empty bins. Relative to the start of the box, bin b of n covers the pixels from floor(b * extent / n) up
          to, but excluding, ceil((b + 1) * extent / n), as far as they are in the image. Adjacent bins may share
          pixels.

          argmax is y * W + x of the largest pixel, the first one among equal pixels. NaN and -infinity are ignored.
          A bin that has no other pixels, an empty bin, and all bins of a RoI with a NaN or infinite component give
          0 and argmax -1. It is an error if a batch index is not an integer in range. If rounded is 1, bins are
          computed in float, as in torchvision and ONNX Runtime, otherwise in double.)",
      .source = R"(Girshick, Fast R-CNN, 2015; `torchvision.ops.roi_pool`, ONNX's MaxRoiPool; with rounded = 0:
          `mmcv.ops.roi_pool`)",
      .differences = "MMCV computes bins in float, and exports its operator as MaxRoiPool, which rounds corners.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape& shape = inputs[0].shape;
    if (shape[3] == 0 || shape[2] <= INT32_MAX / shape[3]) return Status::Ok();
    return InvalidArgument("'input': expected at most ", INT32_MAX, " pixels in an image, got shape ", ToString(shape));
  }
};

}  // namespace polyop
