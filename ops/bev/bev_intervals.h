// SPDX-License-Identifier: Apache-2.0
// Intervals of ranks, one per cell of a bird's eye view (BEV), on CPU and GPU.
#pragma once

#include <cstdint>

#include "core/host_device.h"
#include "core/status.h"

namespace polyop {

/// Intervals of a list of `ranks` ranks: interval j is [starts[j], starts[j] + lengths[j]).
template <class I>
struct BevIntervals {
  const I* starts;
  const I* lengths;
  int64_t count, ranks;

  POLYOP_HD bool Inside(int64_t j) const {
    return starts[j] >= 0 && lengths[j] >= 0 && int64_t{starts[j]} <= ranks && int64_t{lengths[j]} <= ranks - starts[j];
  }
  Status Check() const {
    for (int64_t j = 0; j < count; ++j) {
      if (Inside(j)) continue;
      return InvalidArgument("interval ", j, ": expected it within the ", ranks, " ranks, got start ",
                             int64_t{starts[j]}, " and length ", int64_t{lengths[j]});
    }
    return Status::Ok();
  }
};

}  // namespace polyop
