// SPDX-License-Identifier: Apache-2.0
// Attributes and documentation shared by both versions of deformable convolution.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "core/definition.h"
#include "core/status.h"

namespace polyop {

/// The base of an operator's parameters.
struct DeformConvRule {
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};
  std::array<int64_t, 2> dilation = {1, 1};
  int64_t groups = 1;
  int64_t deform_groups = 1;

  /// What an operator calls its tensors and groups.
  struct Names {
    const char* input = "input";
    const char* weight = "weight";
    const char* groups = "groups";
    const char* deform_groups = "deform_groups";
  };

  /// Checks that groups divide channels and filters.
  Status CheckGroups(const AnyTensor& input, const AnyTensor& weight, const Names& names) const {
    const int64_t channels = input.shape[1], filters = weight.shape[0];
    if (channels % groups == 0 && channels % deform_groups == 0 && filters % groups == 0) return Status::Ok();
    return InvalidArgument("'", names.input, "': expected channels divisible by ", names.groups, " = ", groups,
                           " and by ", names.deform_groups, " = ", deform_groups, ", and filters divisible by ",
                           names.groups, ", got ", channels, " channels and ", filters, " filters of '", names.weight,
                           "'");
  }
  Status CheckGroups(const AnyTensor& input, const AnyTensor& weight) const {
    return CheckGroups(input, weight, Names());
  }
};

inline constexpr std::tuple kDeformConvAttributes = {
    Attr("stride", &DeformConvRule::stride, "vertical and horizontal stride; a single value is used for both")
        .Between(1, 1 << 20),
    Attr("padding", &DeformConvRule::padding, "vertical and horizontal zero padding").Between(0, 1 << 20),
    Attr("dilation", &DeformConvRule::dilation, "vertical and horizontal distance of the filter's points")
        .Between(1, 1 << 20),
    Attr("groups", &DeformConvRule::groups, "number of groups of channels that are convolved separately")
        .AtLeast(1)
        .Also("group"),
    Attr("deform_groups", &DeformConvRule::deform_groups, "number of groups of channels that share offsets")
        .AtLeast(1)
        .Also("deformable_groups", "deformable_group", "deform_group"),
};

inline constexpr const char* kDeformConvSemantics =
    R"(Offsets are pairs (y, x), in order of deform group, then of point. A sample a pixel or more outside of the image
    is 0; interpolation corners outside count as 0. Channel c belongs to deform group c / (C / deform_groups),
    independently of `groups`. `groups` may be any number that divides channels and filters, as in depthwise
    convolution. A NaN or infinite offset samples 0. Sums are computed in float, in an order that depends on the
    instruction set but not on the number of threads.)";

}  // namespace polyop
