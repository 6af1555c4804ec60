// SPDX-License-Identifier: Apache-2.0
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

/// Returns a number whose sign bit is set if the index is not in [0, limit). Such numbers can be combined by `|`, so
/// that a loop over indices needs neither branches nor comparisons, which SSE2 lacks for 64 bits.
template <class I>
std::make_unsigned_t<I> OutsideBits(I index, int64_t limit) {
  using Unsigned = std::make_unsigned_t<I>;
  const auto last = static_cast<Unsigned>(std::min<int64_t>(limit - 1, std::numeric_limits<I>::max()));
  return static_cast<Unsigned>(index) | (last - static_cast<Unsigned>(index));
}

/// Returns whether all indices are in [0, limit).
template <class I>
bool AreInside(const Context& context, const I* indices, int64_t count, int64_t limit) {
  std::atomic<bool> all = true;
  context.ParallelFor(count, GrainFor(0.3), [&](int64_t begin, int64_t end) {
    std::make_unsigned_t<I> outside = 0;
    for (int64_t i = begin; i < end; ++i) outside |= OutsideBits(indices[i], limit);
    if (static_cast<I>(outside) < 0) all = false;
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
  context.ParallelFor(count, GrainFor(0.4), [&](int64_t begin, int64_t end) {
    std::make_unsigned_t<I> outside = 0;
    // ~i = -i - 1, the distance of a negative index from the end
    for (int64_t i = begin; i < end; ++i) {
      outside |= OutsideBits(static_cast<I>(indices[i] ^ (indices[i] < 0 ? -1 : 0)), limit);
    }
    if (static_cast<I>(outside) < 0) inside = false;
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
