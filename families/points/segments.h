// Several point clouds in one tensor, as the ends of segments of rows.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// The ends as 64-bit integers; an error if they do not rise to `total`, the extent called `total_name`.
template <class I>
Status ReadEnds(const char* name, const Tensor<const I, 1>& offset, const char* total_name, int64_t total,
                int64_t* ends) {
  const int64_t count = offset.dim(0);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t before = i == 0 ? 0 : ends[i - 1];
    ends[i] = offset[i];
    if (ends[i] < before) {
      return InvalidArgument("'", name, "'[", i, "] is ", ends[i], ", wanted at least ", before,
                             i == 0 ? "" : ", the end before it");
    }
    if (ends[i] > total) {
      return InvalidArgument("'", name, "'[", i, "] is ", ends[i], ", wanted at most ", total_name, " = ", total);
    }
  }
  const int64_t last = count == 0 ? 0 : ends[count - 1];
  if (last != total) {
    return InvalidArgument("'", name, "' ends at ", last, ", wanted ", total_name, " = ", total);
  }
  return Status::Ok();
}

/// The ends of segments of these many rows; an error if the counts are negative or do not add up to `total`.
template <class I>
Status EndsOfCounts(const char* name, const Tensor<const I, 1>& counts, const char* total_name, int64_t total,
                    int64_t* ends) {
  int64_t end = 0;
  for (int64_t i = 0; i < counts.dim(0); ++i) {
    const int64_t count = counts[i];
    if (count < 0) return InvalidArgument("'", name, "'[", i, "] is ", count, ", wanted at least 0");
    if (count > total - end) {
      return InvalidArgument("'", name, "' adds up to more than ", total_name, " = ", total, " at element ", i, ", ",
                             count);
    }
    ends[i] = end += count;
  }
  if (end == total) return Status::Ok();
  return InvalidArgument("'", name, "' adds up to ", end, ", wanted ", total_name, " = ", total);
}

/// The ends of `batches` clouds of `size` rows.
inline void EndsOfBatches(int64_t batches, int64_t size, int64_t* ends) {
  for (int64_t b = 0; b < batches; ++b) ends[b] = (b + 1) * size;
}

}  // namespace polyop
