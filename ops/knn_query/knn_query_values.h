// What the values of offsets must satisfy: the CPU's kernel and the reference refuse the same.
#pragma once

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// Reads where the segments end into `ends`, as 64-bit integers: they rise up to `total`.
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

}  // namespace polyop
