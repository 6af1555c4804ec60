// SPDX-License-Identifier: Apache-2.0
// Inverts small matrices in parallel, one in each lane of a vector. Compiled once per instruction set; include it from
// a kernel file.
#if defined(POLYOP_OPS_LINALG_INVERSE_INVERSE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_LINALG_INVERSE_INVERSE_LANES_INL_H_
#undef POLYOP_OPS_LINALG_INVERSE_INVERSE_LANES_INL_H_
#else
#define POLYOP_OPS_LINALG_INVERSE_INVERSE_LANES_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/cpu/simd.h"
#include "ops/linalg/inverse/inverse_rule.h"
#include "ops/linalg/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Matrices to invert, one after the other.
template <class T>
struct MatricesToInvert {
  const T* from;
  T* to;
  int64_t size;
};

/// The inverse of a matrix in each lane.
template <class T, class Size>
class InverseLanes {
 public:
  /// The number of doubles that Read's `memory` must have space for.
  static int64_t Doubles(int64_t size) { return LaneMatrices::Doubles(size, size + 3); }

  HWY_INLINE void Read(const MatricesToInvert<T>& matrices, int64_t first, int64_t count, double* memory) {
    const int64_t size = SizeOr<Size>(matrices.size), area = size * size, lanes = RealLanes();
    a_ = {memory, size, size};
    row_scales_ = a_.At(size, 0);
    column_scales_ = row_scales_ + size * lanes;
    exchanged_ = column_scales_ + size * lanes;
    to_ = matrices.to + first * area;
    regular_ = AllLanes();
    const T* const from = matrices.from + first * area;
    if constexpr (std::is_same_v<T, float>) {
      a_.Read(from, count);
    } else {
      for (int64_t e = 0; e < area; ++e) {
        for (int64_t m = 0; m < lanes; ++m) {
          a_.elements[e * lanes + m] = ToFloat(from[std::min(m, count - 1) * area + e]);
        }
      }
    }
    Scale();
  }

  HWY_INLINE int64_t Steps() const { return a_.rows; }

  // A step of Gauss's and Jordan's elimination.
  HWY_INLINE void Step(int64_t k) {
    const LaneMatrices a = a_;  // a copy: the compiler must assume that a store changes members
    const PivotInLanes found = FindPivotInLanes(a, k);
    StoreReals(found.row, exchanged_ + k * RealLanes());
    a.ExchangeRow(k, found.row, k + 1);
    regular_ = hn::And(regular_, hn::Gt(found.magnitude, RealsOf(MinPivot(a.rows))));
    const auto factor = hn::Div(RealsOf(1), a.Get(k, k));
    a.Set(k, k, RealsOf(1));
    ScaleRow(a, k, factor);
    SubtractFromRows(a, k, 0, k);
    SubtractFromRows(a, k, k + 1, a.rows);
  }

  /// Returns all lanes: matrices without an inverse have NaN.
  HWY_INLINE RealMask Write(int64_t count) const {
    ExchangeColumns();
    Unscale();
    if constexpr (std::is_same_v<T, float>) {
      a_.Write(count, to_);
    } else {
      const int64_t area = a_.rows * a_.rows, lanes = RealLanes();
      for (int64_t m = 0; m < std::min(count, lanes); ++m) {
        for (int64_t e = 0; e < area; ++e) {
          to_[m * area + e] = FromFloat<T>(static_cast<float>(a_.elements[e * lanes + m]));
        }
      }
    }
    return AllLanes();
  }

 private:
  static HWY_INLINE Reals Greater(Reals largest, Reals value) {
    const auto magnitude = hn::Abs(value);
    return hn::IfThenElse(hn::Or(hn::Gt(magnitude, largest), hn::IsNaN(magnitude)), magnitude, largest);
  }

  // InverseScale for values that are 0 or not subnormal. Doubles converted from floats are never subnormal.
  static HWY_INLINE Reals ScaleOf(Reals largest) {
    const RealTag d;
    const hn::RebindToUnsigned<RealTag> du;
    const auto exponent = hn::ShiftRight<52>(hn::BitCast(du, largest));
    const auto scale = hn::BitCast(d, hn::ShiftLeft<52>(hn::Sub(hn::Set(du, 2 * 1023 - 1), exponent)));
    const auto finite = hn::IfThenElse(hn::IsFinite(largest), scale, hn::Set(d, NAN));
    return hn::IfThenElse(hn::Eq(largest, hn::Zero(d)), hn::Set(d, 1.0), finite);
  }

  // Scales `a_.rows` elements from `first` on, `step` apart, and returns the scale.
  HWY_INLINE Reals ScaleLine(double* first, int64_t step) const {
    const int64_t count = a_.rows;
    auto largest = hn::Zero(RealTag());
    for (int64_t i = 0; i < count; ++i) largest = Greater(largest, LoadReals(first + i * step));
    const auto scale = ScaleOf(largest);
    for (int64_t i = 0; i < count; ++i) StoreReals(hn::Mul(LoadReals(first + i * step), scale), first + i * step);
    return scale;
  }
  HWY_INLINE void Scale() const {
    for (int64_t i = 0; i < a_.rows; ++i)
      StoreReals(ScaleLine(a_.At(i, 0), RealLanes()), row_scales_ + i * RealLanes());
    for (int64_t j = 0; j < a_.rows; ++j) {
      StoreReals(ScaleLine(a_.At(0, j), a_.rows * RealLanes()), column_scales_ + j * RealLanes());
    }
  }

  // Swaps two columns in some lanes.
  static HWY_INLINE void SwapColumns(const LaneMatrices& a, RealMask where, int64_t j, int64_t k) {
    if (a.rows > kMaxConstantSize && hn::AllFalse(RealTag(), where)) return;
    for (int64_t i = 0; i < a.rows; ++i) {
      const auto x = a.Get(i, j), y = a.Get(i, k);
      a.Set(i, j, hn::IfThenElse(where, y, x));
      a.Set(i, k, hn::IfThenElse(where, x, y));
    }
  }

  // Subtracts multiples of row k from the rows [begin, end), so that their elements of column k become 0.
  static HWY_INLINE void SubtractFromRows(const LaneMatrices& a, int64_t k, int64_t begin, int64_t end) {
    int64_t i = begin;
    for (; i + 4 <= end; i += 4) SubtractFromRows<4>(a, k, i);
    for (; i < end; ++i) SubtractFromRows<1>(a, k, i);
  }
  template <int kCount>
  static HWY_INLINE void SubtractFromRows(const LaneMatrices& a, int64_t k, int64_t first) {
    Reals factors[kCount];
    for (int r = 0; r < kCount; ++r) {
      factors[r] = a.Get(first + r, k);
      a.Set(first + r, k, hn::Zero(RealTag()));
    }
    for (int64_t j = 0; j < a.columns; ++j) {
      const auto u = a.Get(k, j);
      for (int r = 0; r < kCount; ++r) a.Set(first + r, j, hn::Sub(a.Get(first + r, j), hn::Mul(factors[r], u)));
    }
  }

  // Exchanges the columns of the inverse that are rows which Step exchanged.
  HWY_INLINE void ExchangeColumns() const {
    const LaneMatrices a = a_;
    HWY_UNROLL(4)
    for (int64_t n = 1; n <= a.rows; ++n) {
      const int64_t k = a.rows - n;
      const auto row = LoadReals(exchanged_ + k * RealLanes());
      for (int64_t i = k + 1; i < a.rows; ++i) {
        SwapColumns(a, hn::Eq(row, RealsOf(static_cast<double>(i))), k, i);
      }
    }
  }

  HWY_INLINE void Unscale() const {
    const LaneMatrices a = a_;
    const double* const row_scales = row_scales_;
    const auto none = RealsOf(NAN);
    for (int64_t i = 0; i < a.rows; ++i) {
      const auto scale = LoadReals(column_scales_ + i * RealLanes());
      for (int64_t j = 0; j < a.columns; ++j) {
        const auto value = hn::Mul(hn::Mul(a.Get(i, j), scale), LoadReals(row_scales + j * RealLanes()));
        a.Set(i, j, hn::IfThenElse(regular_, value, none));
      }
    }
  }

  LaneMatrices a_;
  double *row_scales_, *column_scales_, *exchanged_;
  T* to_;
  RealMask regular_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
