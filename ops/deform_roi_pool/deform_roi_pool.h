#pragma once

#include <cmath>

#include "core/host_device.h"
#include "core/operator.h"

namespace polyop {

/// Deformable RoI pooling: RoIAlign whose bins are moved by offsets.
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
      Attr("pooled_height", &DeformRoiPool::pooled_height, "bins of a box from top to bottom")
          .Between(1, 4096)
          .Also("output_height"),
      Attr("pooled_width", &DeformRoiPool::pooled_width, "bins of a box from left to right")
          .Between(1, 4096)
          .Also("output_width"),
      Attr("spatial_scale", &DeformRoiPool::spatial_scale, "from the boxes' coordinates to the input's pixels")
          .GreaterThan(0),
      Attr("sampling_ratio", &DeformRoiPool::sampling_ratio,
           "samples per bin and axis, a whole number; 0 or less: one for each pixel, rounded up")
          .AtMost(1024),
      Attr("gamma", &DeformRoiPool::gamma, "by which offsets are multiplied"),
  };
  static constexpr Doc kDoc = {
      .summary = "Pools each box to a grid of bins that are moved by offsets (Deformable ConvNets).",
      .semantics =
          "A roi is (batch index, x1, y1, x2, y2). Without offsets this is roi_align's average of aligned boxes. With "
          "them, bin (i, j) of roi r is moved by gamma * width * offset[r, 0, i, j] to the right and by gamma * height "
          "* "
          "offset[r, 1, i, j] down, where width and height are the roi's in pixels of the input; it keeps its size and "
          "its samples. A bin with a NaN or infinite offset, and the bins of a roi that is NaN, infinite, or reversed "
          "when sampling_ratio is 0, are 0. A batch index that is not a whole number in range is an error. Places are "
          "computed in double precision, sums in float.",
      .source = "Dai et al., Deformable Convolutional Networks, 2017; `mmcv.ops.deform_roi_pool`",
      .differences = "MMCV has it on GPUs alone.",
  };

  /// Along an axis of a bin; 0: one for each pixel.
  POLYOP_HD int64_t Samples() const { return sampling_ratio > 0 ? static_cast<int64_t>(sampling_ratio) : 0; }

  Status Check() const {
    if (sampling_ratio == std::floor(sampling_ratio)) return Status::Ok();
    return InvalidArgument("attribute 'sampling_ratio' is ", sampling_ratio, ", wanted a whole number");
  }
};

}  // namespace polyop
