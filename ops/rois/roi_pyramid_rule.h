// SPDX-License-Identifier: Apache-2.0
// Attributes shared by the operators that pool upright or rotated boxes from a feature pyramid.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>

#include "core/definition.h"

namespace polyop {

/// The base of an operator's parameters.
struct RoiPyramidRule {
  int64_t output_height = 1;
  int64_t output_width = 1;
  int64_t sampling_ratio = 0;
  bool aligned = true;
  List<float, 16> featmap_strides;
  float roi_scale_factor = 0.0f;
  int64_t finest_scale = 56;

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    return CheckLevels("featmap_strides", featmap_strides.size(), inputs);
  }

  /// Checks that the inputs after the RoIs are one feature map per stride; `attribute` is the name of the strides.
  static Status CheckLevels(const char* attribute, int64_t strides, std::span<const AnyTensor> inputs) {
    const int64_t feats = static_cast<int64_t>(inputs.size()) - 1;
    if (strides == feats) return Status::Ok();
    return InvalidArgument("attribute '", attribute, "': expected ", feats, " values, one for each of 'feats', got ",
                           strides);
  }
};

/// The attributes that precede an operator's own.
inline constexpr std::tuple kRoiPyramidBins = {
    Attr("output_height", &RoiPyramidRule::output_height, "bins along a box's height").Between(1, 4096),
    Attr("output_width", &RoiPyramidRule::output_width, "bins along a box's width").Between(1, 4096),
    Attr("sampling_ratio", &RoiPyramidRule::sampling_ratio,
         "samples per bin and axis; 0 or less: the size of a bin in pixels, rounded up")
        .AtMost(1024),
};

/// The attributes that follow an operator's own.
inline constexpr std::tuple kRoiPyramidLevels = {
    Attr("aligned", &RoiPyramidRule::aligned,
         "1: shifts boxes by half a pixel; 0: extends boxes to at least one pixel"),
    Attr("featmap_strides", &RoiPyramidRule::featmap_strides, "image pixels per pixel of each level")
        .GreaterThan(0)
        .Required(),
    Attr("roi_scale_factor", &RoiPyramidRule::roi_scale_factor,
         "scale factor of boxes about their centres; 0 or less: 1"),
    Attr("finest_scale", &RoiPyramidRule::finest_scale,
         "boxes smaller than twice this size are pooled from the first level")
        .AtLeast(1),
};

}  // namespace polyop
