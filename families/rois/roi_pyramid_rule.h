// What pooling upright and rotated boxes from a feature pyramid has in common: attributes.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>

#include "core/definition.h"

namespace polyop {

/// The base of an operator's struct.
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

  /// Behind the rois there is a feature map for each of the strides, the values of this attribute.
  static Status CheckLevels(const char* attribute, int64_t strides, std::span<const AnyTensor> inputs) {
    const int64_t feats = static_cast<int64_t>(inputs.size()) - 1;
    if (strides == feats) return Status::Ok();
    return InvalidArgument("attribute '", attribute, "' has ", strides, " values, wanted one for each of the ", feats,
                           " 'feats'");
  }
};

/// The attributes before an operator's own, …
inline constexpr std::tuple kRoiPyramidBins = {
    Attr("output_height", &RoiPyramidRule::output_height, "bins along a box's height").Between(1, 4096),
    Attr("output_width", &RoiPyramidRule::output_width, "bins along a box's width").Between(1, 4096),
    Attr("sampling_ratio", &RoiPyramidRule::sampling_ratio,
         "samples per bin and axis; 0 or less: one for each pixel, rounded up")
        .AtMost(1024),
};

/// … and those behind it.
inline constexpr std::tuple kRoiPyramidLevels = {
    Attr("aligned", &RoiPyramidRule::aligned,
         "boxes are shifted by half a pixel; else they are at least one pixel large"),
    Attr("featmap_strides", &RoiPyramidRule::featmap_strides,
         "pixels of the picture to a pixel of each level, one a level")
        .GreaterThan(0)
        .Required(),
    Attr("roi_scale_factor", &RoiPyramidRule::roi_scale_factor,
         "boxes grow about their centres by this factor; 0 or less: not at all"),
    Attr("finest_scale", &RoiPyramidRule::finest_scale,
         "boxes of up to twice this size are pooled from the first level")
        .AtLeast(1),
};

}  // namespace polyop
