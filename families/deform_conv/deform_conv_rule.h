// What both versions of deformable convolution have in common: their attributes and documentation.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "core/definition.h"
#include "core/status.h"

namespace polyop {

/// The base of an operator's struct.
struct DeformConvRule {
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};
  std::array<int64_t, 2> dilation = {1, 1};
  int64_t groups = 1;
  int64_t deform_groups = 1;

  /// Groups share channels and filters evenly.
  Status CheckGroups(const AnyTensor& input, const AnyTensor& weight) const {
    const int64_t channels = input.shape[1], filters = weight.shape[0];
    if (channels % groups == 0 && channels % deform_groups == 0 && filters % groups == 0) return Status::Ok();
    return InvalidArgument("'input' has ", channels, " channels and 'weight' ", filters,
                           " filters, wanted channels divisible by groups = ", groups,
                           " and deform_groups = ", deform_groups, ", and filters by groups");
  }
};

inline constexpr std::tuple kDeformConvAttributes = {
    Attr("stride", &DeformConvRule::stride, "steps of the filter, vertical and horizontal; one value serves both")
        .Between(1, 1 << 20),
    Attr("padding", &DeformConvRule::padding, "zeros around the picture").Between(0, 1 << 20),
    Attr("dilation", &DeformConvRule::dilation, "steps between a filter's points").Between(1, 1 << 20),
    Attr("groups", &DeformConvRule::groups, "groups of channels that are convolved apart").AtLeast(1).Also("group"),
    Attr("deform_groups", &DeformConvRule::deform_groups, "groups of channels that share offsets")
        .AtLeast(1)
        .Also("deformable_groups", "deformable_group", "deform_group"),
};

inline constexpr const char* kDeformConvSemantics =
    "Offsets come in pairs (y, x), point by point, deform group by deform group. A sample outside of the picture "
    "by a pixel or more is 0; corners outside count as 0. Channel c belongs to deform group c / (C / deform_groups), "
    "whatever `groups` is; any number of groups that divides channels and filters is possible, depthwise convolution "
    "too. A NaN or infinite offset samples 0. Sums are in float, in an order that depends on the instruction set but "
    "not on the threads.";

}  // namespace polyop
