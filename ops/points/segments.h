// SPDX-License-Identifier: Apache-2.0
// Several point clouds in one tensor, given by the ends of segments of rows.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// Converts the ends to 64 bits. Returns an error unless they ascend to `total`, which is named `total_name`.
template <class I>
Status ReadEnds(const char* name, const Tensor<const I, 1>& offset, const char* total_name, int64_t total,
                int64_t* ends) {
  const int64_t count = offset.dim(0);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t before = i == 0 ? 0 : ends[i - 1];
    ends[i] = offset[i];
    if (ends[i] < before) {
      return InvalidArgument("'", name, "'[", i, "]: expected at least ", before, i == 0 ? "" : ", the previous end",
                             ", got ", ends[i]);
    }
    if (ends[i] > total) {
      return InvalidArgument("'", name, "'[", i, "]: expected at most ", total_name, " = ", total, ", got ", ends[i]);
    }
  }
  const int64_t last = count == 0 ? 0 : ends[count - 1];
  if (last != total) {
    return InvalidArgument("'", name, "': expected the last end to be ", total_name, " = ", total, ", got ", last);
  }
  return Status::Ok();
}

/// Computes the ends of segments from their numbers of rows. Returns an error if a count is negative or if they do not
/// add up to `total`.
template <class I>
Status EndsOfCounts(const char* name, const Tensor<const I, 1>& counts, const char* total_name, int64_t total,
                    int64_t* ends) {
  int64_t end = 0;
  for (int64_t i = 0; i < counts.dim(0); ++i) {
    const int64_t count = counts[i];
    if (count < 0) return InvalidArgument("'", name, "'[", i, "]: expected at least 0, got ", count);
    if (count > total - end) {
      return InvalidArgument("'", name, "'[", i, "]: expected at most ", total - end, ", so that the sum is ",
                             total_name, " = ", total, ", got ", count);
    }
    ends[i] = end += count;
  }
  if (end == total) return Status::Ok();
  return InvalidArgument("'", name, "': expected a sum of ", total_name, " = ", total, ", got ", end);
}

/// Computes the ends of `batches` clouds of `size` rows.
inline void EndsOfBatches(int64_t batches, int64_t size, int64_t* ends) {
  for (int64_t b = 0; b < batches; ++b) ends[b] = (b + 1) * size;
}

}  // namespace polyop
