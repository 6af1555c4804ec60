// SPDX-License-Identifier: Apache-2.0
// The shift of the orientation channels of a rotated box.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace polyop {

struct OrientationShift {
  int64_t orientations;
  int64_t whole;  // integer part in orientations, in [0, orientations)
  float part;     // fraction of the step to the next orientation, in [0, 1)
  bool finite;

  POLYOP_HD static OrientationShift Of(float angle, int64_t orientations) {
    constexpr double kTwoPi = 6.283185307179586;
    const auto count = static_cast<double>(orientations);
    const auto shift = static_cast<float>(static_cast<double>(angle) * count / kTwoPi);
    if (!(std::fabs(shift) < INFINITY)) return {orientations, 0, 0, false};
    const float down = std::floor(shift);
    const auto rest = static_cast<int64_t>(std::fmod(static_cast<double>(down), count));
    return {orientations, rest < 0 ? rest + orientations : rest, shift - down, true};
  }
  /// The two source orientations of `o`.
  POLYOP_HD int64_t First(int64_t o) const { return o < whole ? o - whole + orientations : o - whole; }
  POLYOP_HD int64_t Second(int64_t o) const {
    const int64_t next = First(o) + 1;
    return next == orientations ? 0 : next;
  }
  /// The orientation whose first source is `o`.
  POLYOP_HD int64_t OfFirst(int64_t o) const { return o < orientations - whole ? o + whole : o + whole - orientations; }
  /// The orientation whose second source is `o`.
  POLYOP_HD int64_t OfSecond(int64_t o) const {
    const int64_t of_first = OfFirst(o);
    return (of_first == 0 ? orientations : of_first) - 1;
  }
};

}  // namespace polyop
