// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// RoIAlign of rotated boxes whose orientation channels are rotated with the box.
struct RiRoiAlignRotated {
  int64_t pooled_height = 1;
  int64_t pooled_width = 1;
  float spatial_scale = 1.0f;
  int64_t num_samples = 0;
  int64_t num_orientations = 8;
  bool clockwise = false;

  static constexpr const char* kName = "riroi_align_rotated";
  static constexpr Signature kSignature =
      "input: T[N, C, H, W], rois: T[R, 6] -> output: T[R, C, pooled_height, pooled_width]";
  static constexpr NodeName kNodes[] = {"polyop::RiRoIAlignRotated"};
  static constexpr std::tuple kAttributes = {
      Attr("pooled_height", &RiRoiAlignRotated::pooled_height, "number of bins along the height of a box")
          .Between(1, 4096)
          .Also("output_height"),
      Attr("pooled_width", &RiRoiAlignRotated::pooled_width, "number of bins along the width of a box")
          .Between(1, 4096)
          .Also("output_width"),
      Attr("spatial_scale", &RiRoiAlignRotated::spatial_scale, "scale from box coordinates to pixels of the input")
          .GreaterThan(0),
      Attr("num_samples", &RiRoiAlignRotated::num_samples,
           "samples per bin and axis; 0 or less: one per pixel, rounded up")
          .AtMost(1024),
      Attr("num_orientations", &RiRoiAlignRotated::num_orientations,
           "number of consecutive channels that are one feature in as many orientations")
          .Between(1, 1 << 20),
      Attr("clockwise", &RiRoiAlignRotated::clockwise, "1: angles of boxes are clockwise; 0: counter-clockwise"),
  };
  static constexpr Doc kDoc = {
      .summary = R"(Rotation-invariant RoIAlign: pools each rotated box to a fixed grid and shifts its orientation
          channels by its angle (ReDet).)",
      .semantics = R"(A RoI is (batch index, centre x, centre y, width, height, angle in radians). It is pooled to P
          as in roi_align_rotated with aligned = 0: a box is at least one pixel wide and high. C must be a multiple
          of n = num_orientations. With shift = angle * n / (2 pi), rounded to f32, k = floor(shift) and a = shift -
          k, orientation o of a feature is (1 - a) * P[(o - k) mod n] + a * P[(o - k + 1) mod n]; if a = 0, the
          second term is ignored. clockwise affects only the box. The bins of a RoI are 0 if a component or the
          shift is NaN or infinite. It is an error if a batch index is not an integer in range.)",
      .source = R"(Han et al., ReDet: A Rotation-equivariant Detector for Aerial Object Detection, 2021;
          `mmcv.ops.riroi_align_rotated`)",
      .differences = R"(MMCV has GPU kernels only and reads channels of other features if the angle is below -2 pi.
          ReDet's paper shifts by k and a in the same direction. Its code, MMCV and polyop shift in opposite
          directions, as the published models were trained this way: results are discontinuous where a box rotates
          from one orientation to the next.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const int64_t channels = inputs[0].shape[1];
    if (channels % num_orientations == 0) return Status::Ok();
    return InvalidArgument("'input': expected a multiple of num_orientations = ", num_orientations, " channels, got ",
                           channels);
  }
};

}  // namespace polyop
