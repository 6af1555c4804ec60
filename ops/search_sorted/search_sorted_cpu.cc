#include <bit>
#include <type_traits>

#include "ops/search_sorted/search_sorted.h"

namespace polyop {
namespace {

// Nothing here fills vectors, so this file is compiled once and not for every instruction set.

template <class T>
Status SearchSortedCpu(const SearchSorted& op, const Context& context, Tensor<const T, kAnyRank> sorted_sequence,
                       Tensor<const T, kAnyRank> values, Tensor<int64_t, kAnyRank> indices) {
  const int64_t length = sorted_sequence.dim(sorted_sequence.rank() - 1), count = values.dim(values.rank() - 1);
  const double steps = std::bit_width(static_cast<uint64_t>(length)) + 1;
  const auto search = [&](auto right, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* const sequence = sorted_sequence.data() + i / count * length;
      indices[i] = SearchOne(sequence, length, values[i], right.value);
    }
  };
  context.ParallelFor(values.size(), GrainFor(4 * steps), [&](int64_t begin, int64_t end) {
    op.right != 0 ? search(std::true_type(), begin, end) : search(std::false_type(), begin, end);
  });
  return Status::Ok();
}

POLYOP_PLAIN_CPU_KERNELS(SearchSorted, SearchSortedCpu, float, double, int32_t, int64_t);

}  // namespace
}  // namespace polyop
