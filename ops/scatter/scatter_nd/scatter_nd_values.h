// SPDX-License-Identifier: Apache-2.0
// A check of indices, shared by the CPU kernel and the reference.
#pragma once

#include <span>

#include "core/status.h"

namespace polyop {

/// Checks tuple number `tuple` of 'indices', which begins at `at`, against the extents of 'data' that it indexes.
template <class I>
Status CheckTuple(const I* at, int64_t tuple, std::span<const int64_t> extents) {
  for (size_t d = 0; d < extents.size(); ++d) {
    const int64_t index = at[d], extent = extents[d];
    if (index >= -extent && index < extent) continue;
    return InvalidArgument("'indices': expected a value in [", -extent, ", ", extent, ") for dimension ", d,
                           " of 'data', got ", index, " in tuple ", tuple);
  }
  return Status::Ok();
}

}  // namespace polyop
