// SPDX-License-Identifier: Apache-2.0
// Reduces rows of features to one row, in order. Compiled once per instruction set; include it from a kernel
// file.
#if defined(POLYOP_KERNELS_CPU_REDUCE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_REDUCE_ROWS_INL_H_
#undef POLYOP_KERNELS_CPU_REDUCE_ROWS_INL_H_
#else
#define POLYOP_KERNELS_CPU_REDUCE_ROWS_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// A reduction: the initial value, how a row is added, and how the result of `count` rows is finished.
struct SumOfRows {
  static constexpr float kStart = 0;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V Add(D, V sum, V row) {
    return hn::Add(sum, row);
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V Finish(D, V sum, int64_t) {
    return sum;
  }
};

struct MeanOfRows : SumOfRows {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V Finish(D d, V sum, int64_t count) {
    return hn::Div(sum, hn::Set(d, static_cast<float>(std::max<int64_t>(count, 1))));
  }
};

struct ProductOfRows : SumOfRows {
  static constexpr float kStart = 1;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V Add(D, V product, V row) {
    return hn::Mul(product, row);
  }
};

/// 1 divided by all rows.
struct QuotientOfRows : ProductOfRows {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V Add(D, V quotient, V row) {
    return hn::Div(quotient, row);
  }
};

/// The maximum; NaN if a row has NaN, -infinity without rows.
struct MaxOfRows : SumOfRows {
  static constexpr float kStart = -std::numeric_limits<float>::infinity();
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V Add(D, V max, V row) {
    return hn::IfThenElse(hn::Or(hn::Gt(row, max), hn::IsNaN(row)), row, max);
  }
};

/// The maximum or minimum, ignoring NaN; NaN if all rows are NaN, 0 without rows.
template <bool kMax>
struct ExtremeOfNumbers : SumOfRows {
  static constexpr float kStart = std::numeric_limits<float>::quiet_NaN();
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V Add(D, V extreme, V row) {
    const auto beyond = kMax ? hn::Gt(row, extreme) : hn::Lt(row, extreme);
    return hn::IfThenElse(hn::Or(beyond, hn::IsNaN(extreme)), row, extreme);
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V Finish(D d, V extreme, int64_t count) {
    return count == 0 ? hn::Zero(d) : extreme;
  }
};

/// Contiguous rows, unweighted.
template <class T>
struct PlainRows {
  const T* rows;
  int64_t channels;

  const T* Row(int64_t r) const { return rows + r * channels; }
  template <class D>
  HWY_INLINE hn::Vec<D> Weigh(D, int64_t, hn::Vec<D> row) const {
    return row;
  }
};

/// Reduces rows [begin, end) of `channels` to `to`, four vectors of channels at a time, so that results stay in
/// registers. Rows has `const T* Row(r) const` and `Vec Weigh(d, r, row) const`, which returns the weighted row. Rounds
/// after each step, so that all instruction sets have the same result.
template <class Reduction, class Rows, class T>
void ReduceRows(const Rows& rows, int64_t begin, int64_t end, int64_t channels, T* to) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), count = end - begin;
  const auto start = hn::Set(d, Reduction::kStart);
  int64_t c = 0;
  for (; c + 4 * lanes <= channels; c += 4 * lanes) {
    auto result0 = start, result1 = start, result2 = start, result3 = start;
    for (int64_t r = begin; r < end; ++r) {
      const T* const row = rows.Row(r) + c;
      result0 = Reduction::Add(d, result0, rows.Weigh(d, r, LoadFloat(d, row)));
      result1 = Reduction::Add(d, result1, rows.Weigh(d, r, LoadFloat(d, row + lanes)));
      result2 = Reduction::Add(d, result2, rows.Weigh(d, r, LoadFloat(d, row + 2 * lanes)));
      result3 = Reduction::Add(d, result3, rows.Weigh(d, r, LoadFloat(d, row + 3 * lanes)));
    }
    StoreFloat(Reduction::Finish(d, result0, count), d, to + c);
    StoreFloat(Reduction::Finish(d, result1, count), d, to + c + lanes);
    StoreFloat(Reduction::Finish(d, result2, count), d, to + c + 2 * lanes);
    StoreFloat(Reduction::Finish(d, result3, count), d, to + c + 3 * lanes);
  }
  for (; c < channels; c += lanes) {
    const size_t width = static_cast<size_t>(std::min(lanes, channels - c));
    auto result = start;
    for (int64_t r = begin; r < end; ++r) {
      result = Reduction::Add(d, result, rows.Weigh(d, r, LoadFloatN(d, rows.Row(r) + c, width)));
    }
    StoreFloatN(Reduction::Finish(d, result, count), d, to + c, width);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
