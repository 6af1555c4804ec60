// SPDX-License-Identifier: Apache-2.0
// The samples of a side of a box in double precision: for reference kernels only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace polyop::reference {

/// Calls visit(y, x) for the samples of a side, from end to end. A box that is not finite has none.
template <class Visit>
void ForEachBorderSample(const double* box, int64_t side, int64_t pool_size, const Visit& visit) {
  // The start of each side and the vector along it.
  const double starts[4][2] = {{box[0], box[1]}, {box[0], box[1]}, {box[2], box[3]}, {box[2], box[3]}};
  const double vectors[4][2] = {{box[2] - box[0], 0}, {0, box[3] - box[1]}, {box[0] - box[2], 0}, {0, box[1] - box[3]}};
  if (!std::all_of(box, box + 4, [](double v) { return std::isfinite(v); })) return;
  for (int64_t s = 0; s <= pool_size; ++s) {
    const double part = static_cast<double>(s) / static_cast<double>(pool_size);
    visit(starts[side][1] + vectors[side][1] * part, starts[side][0] + vectors[side][0] * part);
  }
}

}  // namespace polyop::reference
