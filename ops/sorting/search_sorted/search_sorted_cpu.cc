// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sorting/search_sorted/search_sorted_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/sorting/search_sorted/search_sorted.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The steps of SearchOne in the lanes of a vector. Requires: 0 < length, which fits in the lanes' integers.
template <bool kRight, class T>
void SearchRow(const T* sequence, int64_t length, const T* values, int64_t count, int64_t* indices) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  using I = hn::TFromD<decltype(di)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(di, 1), last = hn::Set(di, static_cast<I>(length - 1));
  HWY_ALIGN I found[hn::MaxLanes(di)];
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::LoadU(d, values + i);
    auto begin = hn::Zero(di), left = hn::Set(di, static_cast<I>(length));
    for (auto open = hn::Gt(left, hn::Zero(di)); !hn::AllFalse(di, open); open = hn::Gt(left, hn::Zero(di))) {
      const auto half = hn::ShiftRight<1>(left), middle = hn::Add(begin, half);
      const auto element = hn::GatherIndex(d, sequence, hn::Min(middle, last));
      const auto after = kRight ? hn::Gt(element, value) : hn::Ge(element, value);
      const auto before = hn::AndNot(hn::RebindMask(di, after), open);
      begin = hn::IfThenElse(before, hn::Add(middle, one), begin);
      left = hn::Sub(half, hn::IfThenElseZero(before, hn::AndNot(left, one)));
    }
    hn::Store(begin, di, found);
    for (int64_t k = 0; k < lanes; ++k) indices[i + k] = found[k];
  }
  for (; i < count; ++i) indices[i] = SearchOne(sequence, length, values[i], kRight);
}

template <class T>
Status SearchSortedCpu(const SearchSorted& op, const Context& context, Tensor<const T, kAnyRank> sorted_sequence,
                       Tensor<const T, kAnyRank> values, Tensor<int64_t, kAnyRank> indices) {
  const int64_t length = sorted_sequence.dim(sorted_sequence.rank() - 1), count = values.dim(values.rank() - 1);
  const double steps = std::bit_width(static_cast<uint64_t>(length)) + 1;
  const bool fits = length > 0 && (sizeof(T) == 8 || length < std::numeric_limits<int32_t>::max());
  context.ParallelFor(values.size(), GrainFor(2 * steps), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end;) {
      const int64_t row = i / count, stop = std::min(end, (row + 1) * count);
      const T* const sequence = sorted_sequence.data() + row * length;
      if (fits) {
        const auto search = op.right != 0 ? SearchRow<true, T> : SearchRow<false, T>;
        search(sequence, length, values.data() + i, stop - i, indices.data() + i);
      } else {
        for (int64_t v = i; v < stop; ++v) indices[v] = SearchOne(sequence, length, values[v], op.right != 0);
      }
      i = stop;
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(SearchSorted, SearchSortedCpu, float, double, int32_t, int64_t);
}  // namespace polyop
#endif
