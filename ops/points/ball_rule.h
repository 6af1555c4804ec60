// SPDX-License-Identifier: Apache-2.0
// The rule that decides which points are within a ball.
#pragma once

#include "core/host_device.h"

namespace polyop {

/// Distances are squared, in double, without fused operations.
struct BallRule {
  double min = 0, max = 0;    // a point is inside if min <= squared < max, …
  bool takes_centre = false;  // … or, with this, if it is the centre

  POLYOP_HD bool Holds(double squared) const {
    return (squared >= min && squared < max) || (takes_centre && squared == 0);
  }

  POLYOP_HD static double Square(float radius) { return static_cast<double>(radius) * static_cast<double>(radius); }
};

}  // namespace polyop
