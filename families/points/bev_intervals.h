// The ranks of points that fall into one cell of a bird's eye view: on CPU and GPU.
#pragma once

#include <cstdint>

#include "core/host_device.h"
#include "core/status.h"

namespace polyop {

/// Runs of a list of `ranks` ranks.
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
      return InvalidArgument("interval ", j, " begins at ", int64_t{starts[j]}, " and has ", int64_t{lengths[j]},
                             " ranks, wanted it within the ", ranks, " ranks");
    }
    return Status::Ok();
  }
};

}  // namespace polyop
