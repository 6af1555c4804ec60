// SPDX-License-Identifier: Apache-2.0
// Finds the points within a ball by brute force: for reference kernels only.
#pragma once

#include <cstdint>

namespace polyop {

/// Finds the first `samples` points of a cloud with d = 0 or min_radius <= d < max_radius. If there are fewer, the
/// first one is repeated. If there is none, all indices are 0 except the first, which is `none`.
inline void FindInBall(const double* cloud, int64_t points, const double* centre, double min_radius, double max_radius,
                       int64_t samples, int32_t none, int32_t* idx) {
  int64_t found = 0;
  for (int64_t n = 0; n < points && found < samples; ++n) {
    const double x = cloud[3 * n] - centre[0], y = cloud[3 * n + 1] - centre[1], z = cloud[3 * n + 2] - centre[2];
    const double squared = (x * x + y * y) + z * z;
    const bool inside = min_radius * min_radius <= squared && squared < max_radius * max_radius;
    if (squared == 0 || inside) idx[found++] = static_cast<int32_t>(n);
  }
  for (int64_t k = found; k < samples; ++k) idx[k] = found > 0 ? idx[0] : k == 0 ? none : 0;
}

}  // namespace polyop
