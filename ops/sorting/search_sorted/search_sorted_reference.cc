// SPDX-License-Identifier: Apache-2.0
#include "ops/sorting/search_sorted/search_sorted.h"

namespace polyop {
namespace {

// Returns the result for the elements from `begin` to `end`, by the definition of the search.
template <class T>
int64_t SearchWithin(const T* sequence, int64_t begin, int64_t end, T value, bool right) {
  if (begin == end) return begin;
  const int64_t middle = begin + (end - begin) / 2;
  if (right ? sequence[middle] > value : sequence[middle] >= value) {
    return SearchWithin(sequence, begin, middle, value, right);
  }
  return SearchWithin(sequence, middle + 1, end, value, right);
}

template <class T>
Status SearchSortedReference(const SearchSorted& op, const Context&, Tensor<const T, kAnyRank> sorted_sequence,
                             Tensor<const T, kAnyRank> values, Tensor<int64_t, kAnyRank> indices) {
  const int64_t length = sorted_sequence.dim(indices.rank() - 1), count = indices.dim(indices.rank() - 1);
  for (int64_t i = 0; i < indices.size(); ++i) {
    const T* const sequence = sorted_sequence.data() + i / count * length;
    indices[i] = SearchWithin(sequence, 0, length, T{values[i]}, op.right != 0);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(SearchSorted, SearchSortedReference, double, int32_t, int64_t);

}  // namespace
}  // namespace polyop
