// SPDX-License-Identifier: Apache-2.0
// Random quadrilaterals.
#pragma once

#include <cmath>
#include <numbers>
#include <random>

#include "testing/testing.h"

namespace polyop::testing {

/// Returns rows (x1, y1, …, x4, y4) of a shape [..., 8] in a square of side `extent`: convex quadrilaterals in either
/// orientation, and some with four arbitrary corners.
inline HostTensor RandomQuadrilaterals(DType type, const Shape& shape, double extent, std::mt19937& rng) {
  std::uniform_real_distribution<double> part(0, 1);
  HostTensor rows(type, shape);
  for (int64_t row = 0; row < rows.size(); row += 8) {
    const double x = part(rng) * extent, y = part(rng) * extent, reach = 1 + part(rng) * 5, start = part(rng) * 7;
    const bool convex = rng() % 8 != 0, backwards = rng() % 2 == 0;
    for (int64_t corner = 0; corner < 4; ++corner) {
      const double angle = start + (static_cast<double>(corner) + 0.8 * part(rng)) * std::numbers::pi / 2;
      const int64_t at = row + 2 * (backwards ? 3 - corner : corner);
      rows.set(at, x + reach * (convex ? std::cos(angle) : part(rng)));  // on a circle, or anywhere
      rows.set(at + 1, y + reach * (convex ? std::sin(angle) : part(rng)));
    }
  }
  return rows;
}

}  // namespace polyop::testing
