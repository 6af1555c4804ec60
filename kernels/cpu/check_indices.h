// Indices are looked at before anything is read by them.
#pragma once

#include <cstdint>
#include <limits>

#include "core/context.h"
#include "core/status.h"

namespace polyop {

/// An error if one of the indices is not in [0, limit); `rows` tells of what they are: "a row of 'data'".
template <class I>
Status CheckIndices(const Context& context, const char* name, const I* indices, int64_t count, int64_t limit,
                    const char* rows) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  const int64_t grain = GrainFor(1.0);
  const Scratch<int64_t> wrong = context.Allocate<int64_t>(Context::NumTasks(count, grain));
  if (!wrong) return Internal("out of memory: ", wrong.size(), " tasks");
  context.ParallelFor(count, grain, [&](int64_t task, int64_t begin, int64_t end) {
    wrong[task] = kNone;
    bool all_inside = true;  // without a branch first: the loop becomes one of vectors
    for (int64_t i = begin; i < end; ++i) all_inside &= indices[i] >= 0 && indices[i] < limit;
    for (int64_t i = begin; !all_inside && i < end && wrong[task] == kNone; ++i) {
      if (indices[i] < 0 || indices[i] >= limit) wrong[task] = i;
    }
  });
  for (int64_t task = 0; task < wrong.size(); ++task) {
    if (wrong[task] == kNone) continue;
    return InvalidArgument("'", name, "': element ", wrong[task], " is ", int64_t{indices[wrong[task]]},
                           ", wanted a value in [0, ", limit, "), ", rows);
  }
  return Status::Ok();
}

}  // namespace polyop
