// SPDX-License-Identifier: Apache-2.0
// The bags and their checks, shared by the CPU kernel and the reference.
#pragma once

#include "kernels/cpu/check_indices.h"
#include "ops/scatter/embedding_bag/embedding_bag.h"

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
  if (offsets.dim(0) > 0 && offsets[0] != 0) {
    return InvalidArgument("'offsets'[0]: expected 0, got ", int64_t{offsets[0]});
  }
  POLYOP_RETURN_IF_ERROR(CheckBoundaries("offsets", offsets.data(), offsets.dim(0), count, "the number of indices"));
  return CheckIndices(context, "indices", indices.data(), count, rows, "a row of 'weight'");
}

}  // namespace polyop
