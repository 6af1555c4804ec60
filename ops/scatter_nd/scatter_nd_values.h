// What the values of indices must satisfy: the CPU's kernel and the reference refuse the same.
#pragma once

#include <span>

#include "core/status.h"

namespace polyop {

/// Tuple number `tuple` of 'indices', which begins at `at`, against the extents of 'data' that it indexes.
template <class I>
Status CheckTuple(const I* at, int64_t tuple, std::span<const int64_t> extents) {
  for (size_t d = 0; d < extents.size(); ++d) {
    const int64_t index = at[d], extent = extents[d];
    if (index >= -extent && index < extent) continue;
    return InvalidArgument("'indices': element ", d, " of tuple ", tuple, " is ", index, ", wanted a value in [",
                           -extent, ", ", extent, "), dimension ", d, " of 'data'");
  }
  return Status::Ok();
}

}  // namespace polyop
