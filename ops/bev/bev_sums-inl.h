// SPDX-License-Identifier: Apache-2.0
// Sums of features per cell of a bird's eye view, for ranks or points that are grouped by cell. Compiled once per
// instruction set; include it from a kernel file.

// Outside of the guard because Highway redefines its macros for each target.
#include <algorithm>

#include "kernels/cpu/reduce_rows-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/bev/bev_owners.h"

#if defined(POLYOP_OPS_BEV_BEV_SUMS_TARGET_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_BEV_BEV_SUMS_TARGET_H_
#undef POLYOP_OPS_BEV_BEV_SUMS_TARGET_H_
#else
#define POLYOP_OPS_BEV_BEV_SUMS_TARGET_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Sums the features of each cell's interval, and sets cells without an interval to 0. Rows has
/// `const T* Row(r) const`, the features of rank r, and `Vec Weigh(d, r, features) const`. `owner` is the result of
/// FindOwners.
template <class Rows, class I, class T>
void SumIntervals(const Context& context, const Rows& rows, const BevIntervals<I>& intervals, const int32_t* owner,
                  int64_t cells, int64_t channels, T* to) {
  const double rows_of_a_cell = static_cast<double>(intervals.ranks) / static_cast<double>(cells);
  const double nanoseconds = 2 + 0.2 * static_cast<double>(channels) * (1 + rows_of_a_cell);
  context.ParallelFor(cells, GrainFor(nanoseconds), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t cell = begin; cell < end; ++cell) {
      const int32_t j = owner[cell];
      if (j == kNoInterval) {
        std::fill_n(to + cell * channels, channels, FromFloat<T>(0.0f));
        continue;
      }
      const int64_t start = intervals.starts[j];
      ReduceRows<SumOfRows>(rows, start, start + int64_t{intervals.lengths[j]}, channels, to + cell * channels);
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
