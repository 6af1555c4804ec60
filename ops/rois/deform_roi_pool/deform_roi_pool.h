// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "core/host_device.h"
#include "core/operator.h"

namespace polyop {

/// Deformable RoI pooling: RoIAlign with bins shifted by offsets.
struct DeformRoiPool {
  int64_t pooled_height = 1;
  int64_t pooled_width = 1;
  float spatial_scale = 1.0f;
  float sampling_ratio = 0.0f;
  float gamma = 0.1f;

  static constexpr const char* kName = "deform_roi_pool";
  static constexpr Signature kSignature =
      "input: T[N, C, H, W], rois: T[R, 5], offset?: T[R, 2, PH = pooled_height, PW = pooled_width] "
      "-> output: T[R, C, pooled_height, pooled_width]";
  static constexpr NodeName kNodes[] = {"mmcv::MMCVDeformRoIPool"};
  static constexpr std::tuple kAttributes = {
      Attr("pooled_height", &DeformRoiPool::pooled_height, "number of bins from top to bottom")
          .Between(1, 4096)
          .Also("output_height"),
      Attr("pooled_width", &DeformRoiPool::pooled_width, "number of bins from left to right")
          .Between(1, 4096)
          .Also("output_width"),
      Attr("spatial_scale", &DeformRoiPool::spatial_scale, "scale from the boxes' coordinates to the input's pixels")
          .GreaterThan(0),
      Attr("sampling_ratio", &DeformRoiPool::sampling_ratio,
           "samples per bin and axis, an integer; 0 or less: one per pixel, rounded up")
          .AtMost(1024),
      Attr("gamma", &DeformRoiPool::gamma, "factor of the offsets"),
  };
  static constexpr Doc kDoc = {
      .summary = "Pools each box to a grid of bins that are shifted by offsets (Deformable ConvNets).",
      .semantics = R"(A roi is (batch index, x1, y1, x2, y2). Without offsets, this is the average of `roi_align` with
          aligned boxes. With offsets, bin (i, j) of roi r is shifted by gamma * width * offset[r, 0, i, j] to the right
          and by gamma * height * offset[r, 1, i, j] down, where width and height are those of the roi in pixels of the
          input; the size and the samples of the bin are unchanged. A bin with a NaN or infinite offset is 0; so are all
          bins of a roi that has a NaN or infinite coordinate, or is reversed while `sampling_ratio` is 0. A batch index
          that is not an integer in [0, N) is an error. Coordinates are computed in fp64, sums in fp32.)",
      .source = "Dai et al., Deformable Convolutional Networks, 2017; `mmcv.ops.deform_roi_pool`",
      .differences = "MMCV has GPU kernels only.",
  };

  /// Returns the number of samples along an axis of a bin, or 0 for one per pixel.
  POLYOP_HD int64_t Samples() const { return sampling_ratio > 0 ? static_cast<int64_t>(sampling_ratio) : 0; }

  Status Check() const {
    if (sampling_ratio == std::floor(sampling_ratio)) return Status::Ok();
    return InvalidArgument("attribute 'sampling_ratio': expected an integer, got ", sampling_ratio);
  }
};

}  // namespace polyop
