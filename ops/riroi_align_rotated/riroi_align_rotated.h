#pragma once

#include "core/operator.h"

namespace polyop {

/// RoIAlign of rotated boxes whose channels of orientations turn with the box.
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
      Attr("pooled_height", &RiRoiAlignRotated::pooled_height, "bins along a box's height")
          .Between(1, 4096)
          .Also("output_height"),
      Attr("pooled_width", &RiRoiAlignRotated::pooled_width, "bins along a box's width")
          .Between(1, 4096)
          .Also("output_width"),
      Attr("spatial_scale", &RiRoiAlignRotated::spatial_scale, "from the boxes' coordinates to the input's pixels")
          .GreaterThan(0),
      Attr("num_samples", &RiRoiAlignRotated::num_samples,
           "samples per bin and axis; 0 or less: one for each pixel, rounded up")
          .AtMost(1024),
      Attr("num_orientations", &RiRoiAlignRotated::num_orientations,
           "channels that follow each other and are one feature seen in as many orientations")
          .Between(1, 1 << 20),
      Attr("clockwise", &RiRoiAlignRotated::clockwise, "whether the angle turns the box clockwise"),
  };
  static constexpr Doc kDoc = {
      .summary =
          "Pools each rotated box to a fixed grid, and shifts its channels of orientations by its angle (ReDet).",
      .semantics =
          "A roi is (batch index, centre x, centre y, width, height, angle in radians), pooled to P as by "
          "roi_align_rotated, not aligned: a box is at least one pixel large. With n = num_orientations, of which C "
          "must be a multiple, and turn = angle * n / (2 pi), rounded to f32, orientation o of a feature is (1 - a) * "
          "P[(o - k) mod n] + a * P[(o - k + 1) mod n], where k is turn rounded down and a = turn - k; with a = 0 the "
          "second is not looked at. clockwise turns the box alone. The bins of a roi with NaN or infinity, in its turn "
          "too, are 0. A batch index that is not a whole number in range is an error.",
      .source =
          "Han et al., ReDet: A Rotation-equivariant Detector for Aerial Object Detection, 2021; "
          "`mmcv.ops.riroi_align_rotated`",
      .differences =
          "MMCV has it on GPUs alone, and reads channels that are not the box's own where the angle is below -2 pi. "
          "ReDet's paper shifts by k and a in one sense; its code, MMCV and polyop in opposite ones, for so the "
          "published models were trained: results jump where a box turns from one orientation to the next.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const int64_t channels = inputs[0].shape[1];
    if (channels % num_orientations == 0) return Status::Ok();
    return InvalidArgument("'input' has ", channels,
                           " channels, wanted a multiple of num_orientations = ", num_orientations);
  }
};

}  // namespace polyop
