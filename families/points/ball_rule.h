// Which points a ball holds.
#pragma once

#include "core/host_device.h"

namespace polyop {

/// Distances are squared, in double: each product and sum rounds by itself.
struct BallRule {
  double least = 0, beyond = 0;  // a point is inside if least <= squared < beyond, …
  bool takes_centre = false;     // … or, with this, if it is the centre

  POLYOP_HD bool Holds(double squared) const {
    return (squared >= least && squared < beyond) || (takes_centre && squared == 0);
  }

  POLYOP_HD static double Square(float radius) { return static_cast<double>(radius) * static_cast<double>(radius); }
};

}  // namespace polyop
