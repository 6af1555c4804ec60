// The bags and their checks, shared by the CPU kernel and the reference.
#pragma once

#include "kernels/cpu/check_indices.h"
#include "ops/embedding_bag/embedding_bag.h"

namespace polyop {

/// Returns the end of bag m among `count` indices.
template <class I>
int64_t EndOfBag(const Tensor<const I, 1>& offsets, int64_t m, int64_t count) {
  return m + 1 < offsets.dim(0) ? int64_t{offsets[m + 1]} : count;
}

/// Returns an error if the offsets do not divide the indices into bags, or if an index is not a row of the table.
template <class I>
Status CheckBags(const Context& context, const Tensor<const I, 1>& indices, const Tensor<const I, 1>& offsets,
                 int64_t rows) {
  const int64_t count = indices.dim(0);
  int64_t before = 0;
  for (int64_t m = 0; m < offsets.dim(0); ++m) {
    const int64_t limit = m == 0 ? 0 : count;
    if (offsets[m] < before || offsets[m] > limit) {
      return InvalidArgument(
          "'offsets'[", m, "]: expected ",
          m == 0 ? "0"
                 : Concat("a value in [", before, ", ", count, "], from the preceding one to the number of indices"),
          ", got ", int64_t{offsets[m]});
    }
    before = offsets[m];
  }
  return CheckIndices(context, "indices", indices.data(), count, rows, "a row of 'weight'");
}

}  // namespace polyop
