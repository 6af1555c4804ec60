// Inverts small matrices in parallel, one in each lane of a vector. Compiled once per instruction set; include it from
// a kernel file.
#if defined(POLYOP_OPS_INVERSE_INVERSE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_INVERSE_INVERSE_LANES_INL_H_
#undef POLYOP_OPS_INVERSE_INVERSE_LANES_INL_H_
#else
#define POLYOP_OPS_INVERSE_INVERSE_LANES_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "kernels/cpu/simd.h"
#include "ops/inverse/inverse_rule.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using RealTag = hn::ScalableTag<double>;
using Reals = hn::Vec<RealTag>;

/// Inverts as many matrices of `size` rows as a vector has lanes. The operations on each matrix and their order are
/// those of the scalar algorithm, so the results are bitwise identical.
class InverseLanes {
 public:
  static int64_t Count() { return static_cast<int64_t>(hn::Lanes(RealTag())); }
  /// The number of doubles that the constructor's `memory` must have space for.
  static int64_t Doubles(int64_t size) { return Count() * size * (size + 3); }

  InverseLanes(int64_t size, double* memory)
      : size_(size),
        elements_(memory),
        row_scales_(memory + Count() * size * size),
        column_scales_(row_scales_ + Count() * size),
        swapped_(column_scales_ + Count() * size) {}

  /// Inverts `count` matrices. Requires: count <= Count().
  template <class T>
  void Invert(const T* from, int64_t count, T* to) {
    const int64_t area = size_ * size_;
    if (count < Count()) std::fill_n(elements_, area * Count(), 0.0);
    for (int64_t m = 0; m < count; ++m) {
      for (int64_t e = 0; e < area; ++e) elements_[e * Count() + m] = ToFloat(from[m * area + e]);
    }
    Scale();
    Unscale(Eliminate());
    for (int64_t m = 0; m < count; ++m) {
      for (int64_t e = 0; e < area; ++e) {
        to[m * area + e] = FromFloat<T>(static_cast<float>(elements_[e * Count() + m]));
      }
    }
  }

 private:
  static HWY_INLINE Reals Load(const double* from) { return hn::LoadU(RealTag(), from); }
  static HWY_INLINE void Store(Reals v, double* to) { hn::StoreU(v, RealTag(), to); }
  static HWY_INLINE Reals Number(int64_t i) { return hn::Set(RealTag(), static_cast<double>(i)); }
  double* At(int64_t row, int64_t column) const { return elements_ + (row * size_ + column) * Count(); }

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

  // Scales `size_` elements from `first` on, `step` apart, and returns the scale.
  HWY_INLINE Reals ScaleLine(double* first, int64_t step) const {
    auto largest = hn::Zero(RealTag());
    for (int64_t i = 0; i < size_; ++i) largest = Greater(largest, Load(first + i * step));
    const auto scale = ScaleOf(largest);
    for (int64_t i = 0; i < size_; ++i) Store(hn::Mul(Load(first + i * step), scale), first + i * step);
    return scale;
  }
  void Scale() {
    for (int64_t i = 0; i < size_; ++i) Store(ScaleLine(At(i, 0), Count()), row_scales_ + i * Count());
    for (int64_t j = 0; j < size_; ++j) Store(ScaleLine(At(0, j), size_ * Count()), column_scales_ + j * Count());
  }

  // Swaps two lines of elements that are `step` apart, in some lanes.
  void Swap(hn::Mask<RealTag> where, double* a, double* b, int64_t step) const {
    if (hn::AllFalse(RealTag(), where)) return;
    for (int64_t i = 0; i < size_; ++i, a += step, b += step) {
      const auto x = Load(a), y = Load(b);
      Store(hn::IfThenElse(where, y, x), a);
      Store(hn::IfThenElse(where, x, y), b);
    }
  }

  // Swaps the largest pivots from row k on into row k, and returns the lanes that have one.
  hn::Mask<RealTag> Pivot(int64_t k) const {
    auto best = Number(k), largest = hn::Abs(Load(At(k, k)));
    for (int64_t i = k + 1; i < size_; ++i) {
      const auto magnitude = hn::Abs(Load(At(i, k)));
      const auto larger = hn::Gt(magnitude, largest);
      largest = hn::IfThenElse(larger, magnitude, largest);
      best = hn::IfThenElse(larger, Number(i), best);
    }
    Store(best, swapped_ + k * Count());
    for (int64_t i = k + 1; i < size_; ++i) Swap(hn::Eq(best, Number(i)), At(k, 0), At(i, 0), Count());
    return hn::Gt(largest, hn::Set(RealTag(), MinPivot(size_)));
  }

  // Returns the lanes that have an inverse.
  hn::Mask<RealTag> Eliminate() {
    const RealTag d;
    auto regular = hn::Eq(hn::Zero(d), hn::Zero(d));
    for (int64_t k = 0; k < size_; ++k) {
      regular = hn::And(regular, Pivot(k));
      const auto pivot = Load(At(k, k));
      Store(hn::Set(d, 1.0), At(k, k));
      for (int64_t j = 0; j < size_; ++j) Store(hn::Div(Load(At(k, j)), pivot), At(k, j));
      for (int64_t i = 0; i < size_; ++i) {
        if (i == k) continue;
        const auto factor = Load(At(i, k));
        Store(hn::Zero(d), At(i, k));
        for (int64_t j = 0; j < size_; ++j) {
          Store(hn::Sub(Load(At(i, j)), hn::Mul(factor, Load(At(k, j)))), At(i, j));
        }
      }
    }
    for (int64_t k = size_; k-- > 0;) {
      const auto best = Load(swapped_ + k * Count());
      for (int64_t i = k + 1; i < size_; ++i) Swap(hn::Eq(best, Number(i)), At(0, k), At(0, i), size_ * Count());
    }
    return regular;
  }

  void Unscale(hn::Mask<RealTag> regular) {
    const auto none = hn::Set(RealTag(), NAN);
    for (int64_t i = 0; i < size_; ++i) {
      const auto scale = Load(column_scales_ + i * Count());
      for (int64_t j = 0; j < size_; ++j) {
        const auto value = hn::Mul(hn::Mul(Load(At(i, j)), scale), Load(row_scales_ + j * Count()));
        Store(hn::IfThenElse(regular, value, none), At(i, j));
      }
    }
  }

  int64_t size_;
  double *elements_, *row_scales_, *column_scales_, *swapped_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
