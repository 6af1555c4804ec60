// Indices are looked at before anything is read by them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/context.h"
#include "core/status.h"

namespace polyop {

/// True if all indices are in [0, limit).
template <class I>
bool AreInside(const Context& context, const I* indices, int64_t count, int64_t limit) {
  using Unsigned = std::make_unsigned_t<I>;  // negative ones are the greatest
  std::atomic<bool> all = true;
  context.ParallelFor(count, GrainFor(0.5), [&](int64_t begin, int64_t end) {
    Unsigned most = 0;  // without a branch: the loop becomes one of vectors
    for (int64_t i = begin; i < end; ++i) most = std::max(most, static_cast<Unsigned>(indices[i]));
    if (most > static_cast<Unsigned>(std::numeric_limits<I>::max()) || static_cast<int64_t>(most) >= limit) all = false;
  });
  return all;
}

/// An error if one of the indices is not in [0, limit); `rows` tells of what they are: "a row of 'data'".
template <class I>
Status CheckIndices(const Context& context, const char* name, const I* indices, int64_t count, int64_t limit,
                    const char* rows) {
  if (AreInside(context, indices, count, limit)) return Status::Ok();
  const I* const wrong = std::find_if(indices, indices + count, [=](I i) { return i < 0 || i >= limit; });
  return InvalidArgument("'", name, "': element ", wrong - indices, " is ", int64_t{*wrong}, ", wanted a value in [0, ",
                         limit, "), ", rows);
}

}  // namespace polyop
