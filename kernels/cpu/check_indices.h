// Checks of indices before they are used.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/context.h"
#include "core/status.h"

namespace polyop {

/// Returns whether all indices are in [0, limit).
template <class I>
bool AreInside(const Context& context, const I* indices, int64_t count, int64_t limit) {
  using Unsigned = std::make_unsigned_t<I>;  // negative indices become the largest
  std::atomic<bool> all = true;
  context.ParallelFor(count, GrainFor(0.5), [&](int64_t begin, int64_t end) {
    Unsigned largest = 0;  // no branch, so that the loop is vectorised
    for (int64_t i = begin; i < end; ++i) largest = std::max(largest, static_cast<Unsigned>(indices[i]));
    if (largest > static_cast<Unsigned>(std::numeric_limits<I>::max()) || static_cast<int64_t>(largest) >= limit)
      all = false;
  });
  return all;
}

/// Returns an error if an index is not in [0, limit). `rows` describes what is indexed: "a row of 'data'".
template <class I>
Status CheckIndices(const Context& context, const char* name, const I* indices, int64_t count, int64_t limit,
                    const char* rows) {
  if (AreInside(context, indices, count, limit)) return Status::Ok();
  const I* const wrong = std::find_if(indices, indices + count, [=](I i) { return i < 0 || i >= limit; });
  return InvalidArgument("'", name, "' at flat index ", wrong - indices, ": expected ", rows, " in [0, ", limit,
                         "), got ", int64_t{*wrong});
}

/// Returns an error if an index is not in [-limit, limit): negative ones count from the end.
template <class I>
Status CheckIndicesFromBothEnds(const Context& context, const char* name, const I* indices, int64_t count,
                                int64_t limit) {
  std::atomic<bool> inside = true;
  context.ParallelFor(count, GrainFor(0.5), [&](int64_t begin, int64_t end) {
    I least = 0, greatest = -1;  // no branch, so that the loop is vectorized
    for (int64_t i = begin; i < end; ++i) {
      least = std::min(least, indices[i]);
      greatest = std::max(greatest, indices[i]);
    }
    if (least < -limit || greatest >= limit) inside = false;
  });
  if (inside) return Status::Ok();
  const I* const wrong = std::find_if(indices, indices + count, [=](I i) { return i < -limit || i >= limit; });
  return InvalidArgument("'", name, "' at flat index ", wrong - indices, ": expected a value in [", -limit, ", ", limit,
                         "), got ", int64_t{*wrong});
}

/// Returns an error if `boundaries` of segments decrease, are negative or exceed `limit`. `of` describes the limit:
/// "the number of indices".
template <class I>
Status CheckBoundaries(const char* name, const I* boundaries, int64_t count, int64_t limit, const char* of) {
  int64_t before = 0;
  for (int64_t m = 0; m < count; ++m) {
    if (boundaries[m] < before || boundaries[m] > limit) {
      return InvalidArgument("'", name, "'[", m, "]: expected a value in [", before, ", ", limit,
                             "], from the preceding one to ", of, ", got ", int64_t{boundaries[m]});
    }
    before = boundaries[m];
  }
  return Status::Ok();
}

}  // namespace polyop
