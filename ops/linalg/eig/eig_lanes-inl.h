// SPDX-License-Identifier: Apache-2.0
// Decomposes small general matrices in parallel, one in each lane of a vector. Compiled once per instruction set;
// include it from a kernel file.
#if defined(POLYOP_OPS_LINALG_EIG_EIG_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_LINALG_EIG_EIG_LANES_INL_H_
#undef POLYOP_OPS_LINALG_EIG_EIG_LANES_INL_H_
#else
#define POLYOP_OPS_LINALG_EIG_EIG_LANES_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/cpu/simd.h"
#include "ops/linalg/eig/eig_of_matrix.h"
#include "ops/linalg/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// A complex number in each lane.
struct LaneNumber {
  Reals real, imaginary;
};

HWY_INLINE LaneNumber Multiply(const LaneNumber& x, const LaneNumber& y) {
  return {hn::NegMulAdd(x.imaginary, y.imaginary, hn::Mul(x.real, y.real)),
          hn::MulAdd(x.real, y.imaginary, hn::Mul(x.imaginary, y.real))};
}
HWY_INLINE LaneNumber Subtract(const LaneNumber& x, const LaneNumber& y) {
  return {hn::Sub(x.real, y.real), hn::Sub(x.imaginary, y.imaginary)};
}
HWY_INLINE LaneNumber Select(RealMask mask, const LaneNumber& yes, const LaneNumber& no) {
  return {hn::IfThenElse(mask, yes.real, no.real), hn::IfThenElse(mask, yes.imaginary, no.imaginary)};
}
HWY_INLINE Reals SumOfMagnitudes(const LaneNumber& x) { return hn::Add(hn::Abs(x.real), hn::Abs(x.imaginary)); }

/// Returns the inverse of a number, or that of `least` if the number is smaller in magnitude. That of a real number is
/// the rounded quotient, as without imaginary parts.
HWY_INLINE LaneNumber InverseAwayFromZero(const LaneNumber& x, Reals least) {
  const auto zero = hn::Zero(RealTag());
  const LaneNumber y = Select(hn::Lt(SumOfMagnitudes(x), least), {least, zero}, x);
  const auto is_real = hn::Eq(y.imaginary, zero);
  const auto square = hn::MulAdd(y.real, y.real, hn::Mul(y.imaginary, y.imaginary));
  const auto factor = hn::Div(RealsOf(1), hn::IfThenElse(is_real, y.real, square));
  return {hn::IfThenElse(is_real, factor, hn::Mul(y.real, factor)),
          hn::IfThenZeroElse(is_real, hn::Neg(hn::Mul(y.imaginary, factor)))};
}

/// Householder's reflection I - tau v v^T of two or three elements, where v[0] is 1.
struct LaneReflection {
  Reals v1, v2, tau;
};

/// The eigenvalues and eigenvectors of general matrices in lanes: the algorithm of GeneralMatrices::Decompose, without
/// exchanges of rows and columns.
class GeneralLanes {
 public:
  /// The number of doubles that `memory` must have space for.
  static int64_t Doubles(int64_t size) { return size * (4 * size + 9) * RealLanes(); }

  GeneralLanes(int64_t size, bool with_vectors, double* memory)
      : h{memory, size, size},
        basis{memory + LaneMatrices::Doubles(2 * size, size), size, 2 * size},
        values{memory + LaneMatrices::Doubles(4 * size, size), size, 2},
        size_(size),
        with_vectors_(with_vectors),
        vectors_{memory + LaneMatrices::Doubles(size, size), size, size},
        factors_{memory + LaneMatrices::Doubles(4 * size + 2, size), 1, size},
        x_{factors_.elements + LaneMatrices::Doubles(1, size), size, 2},
        v_{x_.elements + LaneMatrices::Doubles(2, size), size, 2},
        sums_{v_.elements + LaneMatrices::Doubles(2, size), 2, size} {}

  /// Decomposes `h`. Returns the lanes that are done; the results of the others are undefined.
  RealMask Decompose() const {
    const RealTag d;
    const auto usual = MakeModerate();
    if (hn::AllFalse(d, usual.mask)) return usual.mask;
    Balance();
    if (with_vectors_) SetToUnit(vectors_);
    ReduceToHessenberg();
    auto done = hn::And(usual.mask, Iterate());
    done = hn::And(done, StandardizeBlocks(done));
    if (with_vectors_) FindVectors();
    for (int64_t k = 0; k < 2 * size_; ++k) {
      values.Set(0, k, WithoutSignOfZero(hn::Mul(values.Get(0, k), usual.magnitude)));
    }
    for (int64_t e = 0; with_vectors_ && e < 2 * size_ * size_; ++e) {
      basis.Set(0, e, WithoutSignOfZero(basis.Get(0, e)));
    }
    return done;
  }

  /// The matrices, which change; the basis, with pairs of real and imaginary parts; and the values, likewise.
  LaneMatrices h, basis, values;

 private:
  struct Scaled {
    RealMask mask;
    Reals magnitude;
  };

  // Divides the elements by a power of two, so that the largest is less than 1. The lanes with unusual elements, and
  // those that need exchanges of rows and columns, become 0.
  Scaled MakeModerate() const {
    const RealTag d;
    const hn::RebindToUnsigned<RealTag> bits;
    auto usual = MakeUsual(h);
    auto largest = hn::Zero(d);
    for (int64_t i = 0; i < size_; ++i) {
      auto row = hn::Zero(d), column = hn::Zero(d);
      for (int64_t j = 0; j < size_; ++j) {
        largest = hn::Max(largest, hn::Abs(h.Get(i, j)));
        if (j == i) continue;
        row = hn::Max(row, hn::Abs(h.Get(i, j)));
        column = hn::Max(column, hn::Abs(h.Get(j, i)));
      }
      usual = hn::And(usual, hn::Gt(hn::Min(row, column), RealsOf(0x1p-400)));
    }
    const auto exponent = hn::And(hn::BitCast(bits, largest), hn::Set(bits, uint64_t{0x7ff} << 52));
    const auto magnitude =
        hn::IfThenElse(usual, hn::Add(hn::BitCast(d, exponent), hn::BitCast(d, exponent)), RealsOf(1));
    const auto scale = hn::IfThenElseZero(usual, hn::Div(RealsOf(1), magnitude));
    for (int64_t e = 0; e < size_ * size_; ++e) h.Set(0, e, hn::Mul(h.Get(0, e), scale));
    return {usual, magnitude};
  }

  // linalg::Scale.
  void Balance() const {
    constexpr int kMaxSweeps = 60;
    const RealTag d;
    const auto one = RealsOf(1), two = RealsOf(2), half = RealsOf(0.5), tiny = RealsOf(0x1p-400),
               huge = RealsOf(0x1p400);
    for (int64_t i = 0; i < size_; ++i) factors_.Set(0, i, one);
    bool scaled = true;
    for (int sweep = 0; scaled && sweep < kMaxSweeps; ++sweep) {
      scaled = false;
      for (int64_t i = 0; i < size_; ++i) {
        auto column = hn::Zero(d), row = hn::Zero(d);
        for (int64_t j = 0; j < size_; ++j) {
          column = hn::MulAdd(h.Get(j, i), h.Get(j, i), column);
          row = hn::MulAdd(h.Get(i, j), h.Get(i, j), row);
        }
        // Compares squares: most rows need no scaling.
        const auto four = RealsOf(4);
        const auto grows = hn::Lt(hn::Mul(four, column), row), shrinks = hn::Ge(column, hn::Mul(four, row));
        if (hn::AllFalse(d, hn::Or(grows, shrinks))) continue;
        column = hn::Sqrt(column);
        row = hn::Sqrt(row);
        const auto before = hn::Add(column, row);
        auto factor = one;
        const auto valid = hn::And(hn::Gt(column, hn::Zero(d)), hn::Gt(row, hn::Zero(d)));
        const auto multiply = [&](RealMask where, Reals by, Reals inverse) HWY_ATTR {
          factor = hn::IfThenElse(where, hn::Mul(factor, by), factor);
          column = hn::IfThenElse(where, hn::Mul(column, by), column);
          row = hn::IfThenElse(where, hn::Mul(row, inverse), row);
        };
        for (;;) {
          const auto where = hn::And(valid, hn::And(hn::Lt(hn::Mul(two, column), row), hn::Lt(factor, huge)));
          if (hn::AllFalse(d, where)) break;
          multiply(where, two, half);
        }
        for (;;) {
          const auto where = hn::And(valid, hn::And(hn::Ge(column, hn::Mul(two, row)), hn::Gt(factor, tiny)));
          if (hn::AllFalse(d, where)) break;
          multiply(where, half, two);
        }
        const auto total = hn::Mul(factors_.Get(0, i), factor);
        const auto where = hn::And(hn::Lt(hn::Add(column, row), hn::Mul(before, RealsOf(0.95))),
                                   hn::And(hn::Gt(total, tiny), hn::Lt(total, huge)));
        if (hn::AllFalse(d, hn::And(valid, where))) continue;
        scaled = true;
        factor = hn::IfThenElse(hn::And(valid, where), factor, one);
        const auto inverse = hn::Div(one, factor);
        factors_.Set(0, i, hn::Mul(factors_.Get(0, i), factor));
        for (int64_t j = 0; j < size_; ++j) h.Set(i, j, hn::Mul(h.Get(i, j), inverse));
        for (int64_t j = 0; j < size_; ++j) h.Set(j, i, hn::Mul(h.Get(j, i), factor));
      }
    }
  }

  // Finds the reflection that makes the elements whose sum of squares is `rest` 0: returns the factor of their vector,
  // and the other element as it becomes. Where they are negligible next to 1, tau and the factor are 0.
  static HWY_INLINE Reals FindReflection(Reals first, Reals rest, Reals* factor, Reals* beta) {
    first = WithoutSignOfZero(first);
    const auto none = hn::Lt(rest, RealsOf(0x1p-900));
    const auto length = hn::CopySign(hn::Sqrt(hn::MulAdd(first, first, rest)), first);
    *beta = hn::IfThenElse(none, first, hn::Neg(length));
    const auto sum = hn::Add(first, length);
    // 1 / sum and sum / length by one division.
    const auto inverse = hn::Div(RealsOf(1), hn::Mul(sum, length));
    *factor = hn::IfThenZeroElse(none, hn::Mul(inverse, length));
    return hn::IfThenZeroElse(none, hn::Mul(hn::Mul(sum, sum), inverse));
  }

  void ReduceToHessenberg() const {
    const RealTag d;
    for (int64_t k = 0; k + 2 < size_; ++k) {
      const int64_t begin = k + 1;
      auto rest = hn::Zero(d);
      for (int64_t i = begin + 1; i < size_; ++i) rest = hn::MulAdd(h.Get(i, k), h.Get(i, k), rest);
      Reals factor, beta;
      const auto tau = FindReflection(h.Get(begin, k), rest, &factor, &beta);
      h.Set(begin, k, beta);
      sums_.Set(0, begin, RealsOf(1));
      for (int64_t i = begin + 1; i < size_; ++i) {
        sums_.Set(0, i, hn::Mul(h.Get(i, k), factor));
        h.Set(i, k, hn::Zero(d));
      }
      for (int64_t i = 0; i < size_; ++i) {
        auto sum = h.Get(i, begin);
        for (int64_t j = begin + 1; j < size_; ++j) sum = hn::MulAdd(h.Get(i, j), sums_.Get(0, j), sum);
        sum = hn::Mul(sum, tau);
        for (int64_t j = begin; j < size_; ++j) h.Set(i, j, hn::NegMulAdd(sum, sums_.Get(0, j), h.Get(i, j)));
      }
      ReflectRows(h, begin, begin, tau);
      if (with_vectors_) ReflectRows(vectors_, begin, 1, tau);
    }
  }

  // Applies the reflection of the vector in `sums_` to the rows from `begin` on.
  HWY_INLINE void ReflectRows(const LaneMatrices& a, int64_t begin, int64_t first_column, Reals tau) const {
    for (int64_t j = first_column; j < size_; ++j) {
      auto sum = a.Get(begin, j);
      for (int64_t i = begin + 1; i < size_; ++i) sum = hn::MulAdd(a.Get(i, j), sums_.Get(0, i), sum);
      sum = hn::Mul(sum, tau);
      for (int64_t i = begin; i < size_; ++i) a.Set(i, j, hn::NegMulAdd(sum, sums_.Get(0, i), a.Get(i, j)));
    }
  }

  // Returns the lanes in which the element below the diagonal in row k is negligible, as linalg::StartOfBlock.
  HWY_INLINE RealMask Negligible(int64_t k) const {
    const RealTag d;
    const auto small = RealsOf(std::numeric_limits<double>::min() *
                               (static_cast<double>(size_) / std::numeric_limits<double>::epsilon()));
    const auto tolerance = RealsOf(std::numeric_limits<double>::epsilon());
    const auto below = hn::Abs(h.Get(k, k - 1)), before = h.Get(k - 1, k - 1), own = h.Get(k, k);
    auto nearby = hn::Add(hn::Abs(before), hn::Abs(own));
    const auto zero = hn::Eq(nearby, hn::Zero(d));
    if (!hn::AllFalse(d, zero)) {
      auto more = hn::Zero(d);
      if (k >= 2) more = hn::Abs(h.Get(k - 1, k - 2));
      if (k + 1 < size_) more = hn::Add(more, hn::Abs(h.Get(k + 1, k)));
      nearby = hn::IfThenElse(zero, more, nearby);
    }
    const auto candidates = hn::Or(hn::Le(below, small), hn::Le(below, hn::Mul(tolerance, nearby)));
    if (hn::AllFalse(d, candidates)) return candidates;
    const auto above = hn::Abs(h.Get(k - 1, k)), apart = hn::Abs(hn::Sub(before, own)), magnitude = hn::Abs(own);
    const auto more = hn::Max(below, above), less = hn::Min(below, above);
    const auto larger = hn::Max(magnitude, apart), smaller = hn::Min(magnitude, apart), sum = hn::Add(larger, more);
    const auto negligible = hn::Le(hn::Mul(less, hn::Div(more, sum)),
                                   hn::Max(small, hn::Mul(tolerance, hn::Mul(smaller, hn::Div(larger, sum)))));
    return hn::Or(hn::Le(below, small), hn::And(candidates, negligible));
  }

  // The QR algorithm with two shifts. Returns the lanes that converge.
  RealMask Iterate() const {
    constexpr int kMaxSteps = 30;
    const RealTag d;
    const auto zero = hn::Zero(d), one = RealsOf(1);
    auto last = RealsOf(static_cast<double>(size_ - 1)), steps = zero;
    auto converged = AllLanes();
    for (;;) {
      auto start = zero, a = zero, b = zero, c = zero, e = zero;
      auto searching = hn::Ge(last, zero);
      const auto previous = last;
      for (int64_t k = size_ - 1; k > 0; --k) {
        const auto row = RealsOf(static_cast<double>(k));
        const auto inside = hn::And(searching, hn::Ge(last, row));
        if (hn::AllFalse(d, inside)) continue;
        const auto found = hn::And(inside, Negligible(k));
        if (hn::AllFalse(d, found)) continue;
        h.Set(k, k - 1, hn::IfThenZeroElse(found, h.Get(k, k - 1)));
        const auto ends = hn::And(found, hn::Ge(hn::Add(row, one), last));
        last = hn::IfThenElse(ends, hn::Sub(row, one), last);
        start = hn::IfThenElse(found, row, start);
        searching = hn::AndNot(hn::And(found, hn::Not(ends)), searching);
      }
      start = hn::IfThenZeroElse(searching, start);
      last = hn::IfThenElse(hn::And(searching, hn::Le(last, one)), RealsOf(-1), last);
      steps = hn::IfThenElse(hn::Eq(last, previous), hn::Add(steps, one), one);
      const auto late = hn::And(hn::Ge(last, zero), hn::Gt(steps, RealsOf(kMaxSteps)));
      converged = hn::AndNot(late, converged);
      last = hn::IfThenElse(late, RealsOf(-1), last);
      const auto active = hn::Ge(last, zero);
      if (hn::AllFalse(d, active)) return converged;
      for (int64_t k = 2; k < size_; ++k) {
        const auto here = hn::Eq(last, RealsOf(static_cast<double>(k)));
        if (hn::AllFalse(d, here)) continue;
        a = hn::IfThenElse(here, h.Get(k - 1, k - 1), a);
        b = hn::IfThenElse(here, h.Get(k - 1, k), b);
        c = hn::IfThenElse(here, h.Get(k, k - 1), c);
        e = hn::IfThenElse(here, h.Get(k, k), e);
      }
      const auto unusual = hn::And(active, hn::Or(hn::Eq(steps, RealsOf(10)), hn::Eq(steps, RealsOf(20))));
      if (!hn::AllFalse(d, unusual)) ChangeShifts(unusual, steps, start, last, &a, &b, &c, &e);
      Step(active, start, last, ShiftsOf(a, b, c, e));
    }
  }

  // Replaces the block whose eigenvalues are the shifts, where a cycle must end.
  HWY_NOINLINE void ChangeShifts(RealMask where, Reals steps, Reals start, Reals last, Reals* a, Reals* b, Reals* c,
                                 Reals* e) const {
    HWY_ALIGN double all_steps[hn::MaxLanes(RealTag())], starts[hn::MaxLanes(RealTag())],
        lasts[hn::MaxLanes(RealTag())], sums[hn::MaxLanes(RealTag())] = {}, diagonals[hn::MaxLanes(RealTag())] = {};
    StoreReals(hn::IfThenElseZero(where, steps), all_steps);
    StoreReals(start, starts);
    StoreReals(last, lasts);
    for (int64_t m = 0; m < RealLanes(); ++m) {
      if (all_steps[m] == 0) continue;
      const auto at = [&](int64_t i, int64_t j) { return h.At(i, j)[m]; };
      const bool first = all_steps[m] == 10;
      const int64_t row = static_cast<int64_t>(first ? starts[m] : lasts[m]), top = first ? row : row - 2;
      sums[m] = std::fabs(at(top + 1, top)) + std::fabs(at(top + 2, top + 1));
      diagonals[m] = 0.75 * sums[m] + at(row, row);
    }
    const auto sum = LoadReals(sums), diagonal = LoadReals(diagonals);
    *a = hn::IfThenElse(where, diagonal, *a);
    *b = hn::IfThenElse(where, hn::Mul(sum, RealsOf(-0.4375)), *b);
    *c = hn::IfThenElse(where, sum, *c);
    *e = hn::IfThenElse(where, diagonal, *e);
  }

  // linalg::ShiftsOf.
  static HWY_INLINE LaneNumber ShiftsOf(Reals a, Reals b, Reals c, Reals e) {
    const auto half = RealsOf(0.5);
    const auto mean = hn::Mul(hn::Add(a, e), half), apart = hn::Mul(hn::Sub(a, e), half);
    // (a - mean) (e - mean) = -apart^2
    const auto determinant = hn::Neg(hn::MulAdd(apart, apart, hn::Mul(b, c)));
    const auto root = hn::Sqrt(hn::Abs(determinant));
    const auto pair = hn::Ge(determinant, hn::Zero(RealTag()));
    const auto more = hn::Add(mean, root), less = hn::Sub(mean, root);
    const auto nearer = hn::IfThenElse(hn::Le(hn::Abs(hn::Sub(more, e)), hn::Abs(hn::Sub(less, e))), more, less);
    return {hn::IfThenElse(pair, mean, nearer), hn::IfThenElseZero(pair, root)};
  }

  // Returns the row in which a step starts: after the first of two adjacent small elements below the diagonal.
  HWY_INLINE Reals FirstOfStep(RealMask active, Reals start, Reals last, const LaneNumber& shifts) const {
    const RealTag d;
    auto begin = start;
    for (int64_t k = 1; k + 2 < size_; ++k) {
      const auto row = RealsOf(static_cast<double>(k));
      const auto inside = hn::And(active, hn::And(hn::Lt(start, row), hn::Le(hn::Add(row, RealsOf(2)), last)));
      if (hn::AllFalse(d, inside)) continue;
      const auto own = h.Get(k, k), next = h.Get(k + 1, k + 1), q = h.Get(k + 1, k), p = hn::Sub(own, shifts.real);
      const auto y0 = hn::MulAdd(q, h.Get(k, k + 1), hn::MulAdd(p, p, hn::Mul(shifts.imaginary, shifts.imaginary)));
      const auto y1 = hn::Sub(hn::Add(own, next), hn::Add(shifts.real, shifts.real));
      const auto others = hn::Mul(hn::Abs(q), hn::Add(hn::Abs(y1), hn::Abs(h.Get(k + 2, k + 1))));
      const auto nearby = hn::Add(hn::Add(hn::Abs(h.Get(k - 1, k - 1)), hn::Abs(own)), hn::Abs(next));
      const auto limit = hn::Mul(hn::Mul(RealsOf(std::numeric_limits<double>::epsilon()), hn::Abs(y0)), nearby);
      const auto small = hn::Le(hn::Mul(hn::Abs(h.Get(k, k - 1)), others), limit);
      begin = hn::IfThenElse(hn::And(inside, small), row, begin);
    }
    return begin;
  }

  // linalg::DoubleStep on the rows [start, last] of the active lanes, of which each has at least three.
  HWY_INLINE void Step(RealMask active, Reals start, Reals last, const LaneNumber& shifts) const {
    const RealTag d;
    const auto zero = hn::Zero(d);
    int64_t left = 0, right = size_ - 1;
    const auto begin = FirstOfStep(active, start, last, shifts);
    const auto first = hn::ReduceMin(d, hn::IfThenElse(active, begin, RealsOf(kMaxSizeInLanes)));
    const auto end = static_cast<int64_t>(hn::ReduceMax(d, hn::IfThenElseZero(active, last)));
    if (!with_vectors_) {
      left = static_cast<int64_t>(hn::ReduceMin(d, hn::IfThenElse(active, start, RealsOf(kMaxSizeInLanes))));
      right = end;
    }
    for (auto k = static_cast<int64_t>(first); k < end; ++k) {
      const auto row = RealsOf(static_cast<double>(k));
      const auto inside = hn::And(active, hn::And(hn::Le(begin, row), hn::Lt(row, last)));
      const auto starts = hn::And(inside, hn::Eq(begin, row));
      auto x0 = zero, x1 = zero, x2 = zero;
      if (k > 0) {
        x0 = h.Get(k, k - 1);
        x1 = hn::IfThenElseZero(inside, h.Get(k + 1, k - 1));
        if (k + 2 < size_) x2 = hn::IfThenElseZero(inside, h.Get(k + 2, k - 1));
      }
      const auto old = x0;
      if (k + 2 < size_ && !hn::AllFalse(d, starts)) {
        const auto p = hn::Sub(h.Get(k, k), shifts.real), q = h.Get(k + 1, k);
        auto norm = hn::Add(hn::Add(hn::Abs(p), hn::Abs(shifts.imaginary)), hn::Abs(q));
        const auto inverse = hn::Div(RealsOf(1), norm);
        const auto scaled = hn::Mul(q, inverse);
        auto y0 = hn::MulAdd(
            scaled, h.Get(k, k + 1),
            hn::MulAdd(p, hn::Mul(p, inverse), hn::Mul(shifts.imaginary, hn::Mul(shifts.imaginary, inverse))));
        auto y1 =
            hn::Mul(scaled, hn::Sub(hn::Add(h.Get(k, k), h.Get(k + 1, k + 1)), hn::Add(shifts.real, shifts.real)));
        auto y2 = hn::Mul(scaled, h.Get(k + 2, k + 1));
        norm = hn::Div(RealsOf(1), hn::Add(hn::Add(hn::Abs(y0), hn::Abs(y1)), hn::Abs(y2)));
        x0 = hn::IfThenElse(starts, hn::Mul(y0, norm), x0);
        x1 = hn::IfThenElse(starts, hn::Mul(y1, norm), x1);
        x2 = hn::IfThenElse(starts, hn::Mul(y2, norm), x2);
      }
      Reals factor, beta;
      const auto rest = hn::IfThenElseZero(inside, hn::MulAdd(x1, x1, hn::Mul(x2, x2)));
      const auto tau = FindReflection(x0, rest, &factor, &beta);
      const LaneReflection reflection = {hn::Mul(x1, factor), hn::Mul(x2, factor), tau};
      if (k > 0) {
        const auto reduced = hn::NegMulAdd(old, tau, old);
        h.Set(k, k - 1, hn::IfThenElse(inside, hn::IfThenElse(starts, reduced, beta), old));
        h.Set(k + 1, k - 1, zero);
        if (k + 2 < size_) h.Set(k + 2, k - 1, zero);
      }
      const int64_t below = std::min(k + 3, right);
      if (k + 2 < size_) {
        ReflectThreeRows(h, k, k, right, reflection);
        for (int64_t i = left; i <= below; ++i) {
          const auto e0 = h.Get(i, k), e1 = h.Get(i, k + 1), e2 = h.Get(i, k + 2);
          const auto sum = hn::Mul(reflection.tau, hn::MulAdd(reflection.v2, e2, hn::MulAdd(reflection.v1, e1, e0)));
          h.Set(i, k, hn::Sub(e0, sum));
          h.Set(i, k + 1, hn::NegMulAdd(sum, reflection.v1, e1));
          h.Set(i, k + 2, hn::NegMulAdd(sum, reflection.v2, e2));
        }
        if (with_vectors_) ReflectThreeRows(vectors_, k, 0, size_ - 1, reflection);
      } else {
        ReflectTwoRows(h, k, k, right, reflection);
        for (int64_t i = left; i <= below; ++i) {
          const auto e0 = h.Get(i, k), e1 = h.Get(i, k + 1);
          const auto sum = hn::Mul(reflection.tau, hn::MulAdd(reflection.v1, e1, e0));
          h.Set(i, k, hn::Sub(e0, sum));
          h.Set(i, k + 1, hn::NegMulAdd(sum, reflection.v1, e1));
        }
        if (with_vectors_) ReflectTwoRows(vectors_, k, 0, size_ - 1, reflection);
      }
    }
  }

  static HWY_INLINE void ReflectThreeRows(const LaneMatrices& a, int64_t k, int64_t first, int64_t last,
                                          const LaneReflection& r) {
    for (int64_t j = first; j <= last; ++j) {
      const auto e0 = a.Get(k, j), e1 = a.Get(k + 1, j), e2 = a.Get(k + 2, j);
      const auto sum = hn::Mul(r.tau, hn::MulAdd(r.v2, e2, hn::MulAdd(r.v1, e1, e0)));
      a.Set(k, j, hn::Sub(e0, sum));
      a.Set(k + 1, j, hn::NegMulAdd(sum, r.v1, e1));
      a.Set(k + 2, j, hn::NegMulAdd(sum, r.v2, e2));
    }
  }

  static HWY_INLINE void ReflectTwoRows(const LaneMatrices& a, int64_t k, int64_t first, int64_t last,
                                        const LaneReflection& r) {
    for (int64_t j = first; j <= last; ++j) {
      const auto e0 = a.Get(k, j), e1 = a.Get(k + 1, j);
      const auto sum = hn::Mul(r.tau, hn::MulAdd(r.v1, e1, e0));
      a.Set(k, j, hn::Sub(e0, sum));
      a.Set(k + 1, j, hn::NegMulAdd(sum, r.v1, e1));
    }
  }

  // linalg::StandardizeBlock for all blocks, and the values. Returns the lanes without rare cases.
  RealMask StandardizeBlocks(RealMask done) const {
    const RealTag d;
    const auto zero = hn::Zero(d), one = RealsOf(1), half = RealsOf(0.5);
    for (int64_t k = 0; k < size_; ++k) {
      values.Set(k, 0, h.Get(k, k));
      values.Set(k, 1, zero);
    }
    for (int64_t k = 0; k + 1 < size_; ++k) {
      auto a = h.Get(k, k), b = h.Get(k, k + 1), c = h.Get(k + 1, k), e = h.Get(k + 1, k + 1);
      const auto block = hn::Ne(c, zero);
      if (hn::AllFalse(d, block)) continue;
      const auto product_sign = hn::Xor(b, c);
      const auto opposite = hn::IsNegative(product_sign);
      const auto standard = hn::Or(hn::Not(block), hn::And(hn::Eq(a, e), opposite));
      const auto difference = WithoutSignOfZero(hn::Sub(a, e)), p = hn::Mul(difference, half);
      const auto larger = hn::Max(hn::Abs(b), hn::Abs(c));
      const auto smaller = hn::CopySign(hn::Min(hn::Abs(b), hn::Abs(c)), product_sign);
      const auto scale = hn::Max(hn::Abs(p), larger), inverse = hn::Div(one, scale);
      const auto discriminant = hn::MulAdd(hn::Mul(p, inverse), p, hn::Mul(hn::Mul(larger, inverse), smaller));
      const auto distinct = hn::Ge(discriminant, RealsOf(4 * std::numeric_limits<double>::epsilon()));
      // Distinct real eigenvalues.
      const auto z = hn::Add(p, hn::CopySign(hn::Mul(hn::Sqrt(scale), hn::Sqrt(hn::Abs(discriminant))), p));
      const auto first = hn::Add(e, z), second = hn::NegMulAdd(hn::Div(larger, z), smaller, e);
      const auto length = hn::Sqrt(hn::MulAdd(c, c, hn::Mul(z, z)));
      // Conjugates, or nearly equal real ones.
      const auto sum = hn::Add(b, c), distance = hn::Sqrt(hn::MulAdd(sum, sum, hn::Mul(difference, difference)));
      auto cosine = hn::Sqrt(hn::Mul(hn::Add(one, hn::Div(hn::Abs(sum), distance)), half));
      auto sine = hn::Neg(hn::Mul(hn::Div(p, hn::Mul(distance, cosine)), hn::CopySign(one, sum)));
      cosine = hn::IfThenElse(standard, one, hn::IfThenElse(distinct, hn::Div(z, length), cosine));
      sine = hn::IfThenZeroElse(standard, hn::IfThenElse(distinct, hn::Div(c, length), sine));
      const auto aa = hn::MulAdd(a, cosine, hn::Mul(b, sine)), bb = hn::NegMulAdd(a, sine, hn::Mul(b, cosine));
      const auto cc = hn::MulAdd(c, cosine, hn::Mul(e, sine)), ee = hn::NegMulAdd(c, sine, hn::Mul(e, cosine));
      auto new_b = hn::MulAdd(bb, cosine, hn::Mul(ee, sine)), new_c = hn::NegMulAdd(aa, sine, hn::Mul(cc, cosine));
      const auto mean = hn::Mul(
          half, hn::Add(hn::MulAdd(aa, cosine, hn::Mul(cc, sine)), hn::NegMulAdd(bb, sine, hn::Mul(ee, cosine))));
      a = hn::IfThenElse(standard, a, hn::IfThenElse(distinct, first, mean));
      e = hn::IfThenElse(standard, e, hn::IfThenElse(distinct, second, mean));
      new_b = hn::IfThenElse(standard, b, hn::IfThenElse(distinct, hn::Sub(b, c), new_b));
      new_c = hn::IfThenElse(standard, c, hn::IfThenZeroElse(distinct, new_c));
      const auto real = hn::Or(hn::Not(block), hn::And(distinct, hn::Not(standard)));
      const auto usual = hn::And(hn::Lt(hn::Mul(new_b, new_c), RealsOf(-0x1p-900)), hn::Eq(hn::Abs(a), hn::Abs(a)));
      done = hn::And(done, hn::Or(hn::Not(block), hn::And(hn::Gt(larger, RealsOf(0x1p-400)), hn::Or(real, usual))));
      done = hn::And(done, hn::Or(hn::Not(block), hn::Ne(b, zero)));
      const auto pair = hn::And(block, hn::Not(real));
      h.Set(k, k, a);
      h.Set(k, k + 1, new_b);
      h.Set(k + 1, k, hn::IfThenElseZero(pair, new_c));
      h.Set(k + 1, k + 1, e);
      const auto imaginary = hn::IfThenElseZero(pair, hn::Mul(hn::Sqrt(hn::Abs(new_b)), hn::Sqrt(hn::Abs(new_c))));
      values.Set(k, 0, a);
      values.Set(k + 1, 0, e);
      values.Set(k, 1, hn::IfThenElse(block, imaginary, values.Get(k, 1)));
      values.Set(k + 1, 1, hn::IfThenElse(block, hn::Neg(imaginary), values.Get(k + 1, 1)));
      if (!with_vectors_) continue;
      RotateRows(h, k, k + 2, cosine, sine);
      for (int64_t i = 0; i < k; ++i) {
        const auto x = h.Get(i, k), y = h.Get(i, k + 1);
        h.Set(i, k, hn::MulAdd(cosine, x, hn::Mul(sine, y)));
        h.Set(i, k + 1, hn::NegMulAdd(sine, x, hn::Mul(cosine, y)));
      }
      RotateRows(vectors_, k, 0, cosine, sine);
    }
    return done;
  }

  HWY_INLINE void RotateRows(const LaneMatrices& a, int64_t k, int64_t first, Reals cosine, Reals sine) const {
    for (int64_t j = first; j < size_; ++j) {
      const auto x = a.Get(k, j), y = a.Get(k + 1, j);
      a.Set(k, j, hn::MulAdd(cosine, x, hn::Mul(sine, y)));
      a.Set(k + 1, j, hn::NegMulAdd(sine, x, hn::Mul(cosine, y)));
    }
  }

  HWY_INLINE LaneNumber NumberAt(const LaneMatrices& of, int64_t i) const { return {of.Get(i, 0), of.Get(i, 1)}; }
  HWY_INLINE void SetNumber(const LaneMatrices& of, int64_t i, const LaneNumber& x) const {
    of.Set(i, 0, x.real);
    of.Set(i, 1, x.imaginary);
  }

  // The eigenvectors of the Schur form by back-substitution, and those of the matrices.
  void FindVectors() const {
    const RealTag d;
    const auto zero = hn::Zero(d), one = RealsOf(1);
    auto norm = zero;
    for (int64_t e = 0; e < size_ * size_; ++e) norm = hn::Max(norm, hn::Abs(h.Get(0, e)));
    const auto least = hn::Max(hn::Mul(RealsOf(std::numeric_limits<double>::epsilon()), norm), RealsOf(0x1p-400));
    for (int64_t k = 0; k < size_; ++k) {
      const LaneNumber value = NumberAt(values, k);
      const auto pair = hn::Gt(value.imaginary, zero), second = hn::Lt(value.imaginary, zero);
      if (hn::AllTrue(d, second)) continue;
      int64_t end = k + 1;
      if (!hn::AllFalse(d, pair)) {
        end = k + 2;
        const auto above = h.Get(k, k + 1), below = h.Get(k + 1, k);
        const auto larger = hn::Ge(hn::Abs(above), hn::Abs(below));
        const auto ratio = hn::Div(value.imaginary, hn::IfThenElse(larger, above, below));
        SetNumber(x_, k, {hn::IfThenElse(hn::And(pair, hn::Not(larger)), hn::Neg(ratio), one), zero});
        SetNumber(x_, k + 1, {zero, hn::IfThenElseZero(pair, hn::IfThenElse(larger, ratio, one))});
        Solve<true>(k, end, value, least);
        FinishVector<true>(k, end, second);
      } else {
        SetNumber(x_, k, {one, zero});
        Solve<false>(k, end, value, least);
        FinishVector<false>(k, end, second);
      }
    }
  }

  // eig::SolveRowsOfSchur for the rows before k. Other than in lanes of pairs, the imaginary parts are 0.
  template <bool kPair>
  HWY_INLINE void Solve(int64_t k, int64_t end, const LaneNumber& value, Reals least) const {
    const RealTag d;
    const auto zero = hn::Zero(d);
    const auto wi = kPair ? hn::Max(value.imaginary, zero) : zero;
    auto solved = hn::Lt(zero, zero);
    for (int64_t i = k - 1; i >= 0; --i) {
      const auto rest = [&](int64_t row, int64_t first) HWY_ATTR {
        LaneNumber sum = {zero, zero};
        for (int64_t j = first; j < end; ++j) {
          sum.real = hn::NegMulAdd(h.Get(row, j), x_.Get(j, 0), sum.real);
          if constexpr (kPair) sum.imaginary = hn::NegMulAdd(h.Get(row, j), x_.Get(j, 1), sum.imaginary);
        }
        return sum;
      };
      const auto inverse = [&](const LaneNumber& x) HWY_ATTR {
        if constexpr (kPair) return InverseAwayFromZero(x, least);
        const auto divisor = hn::IfThenElse(hn::Lt(hn::Abs(x.real), least), least, x.real);
        return LaneNumber{hn::Div(RealsOf(1), divisor), zero};
      };
      const auto times = [&](const LaneNumber& x, const LaneNumber& y) HWY_ATTR {
        if constexpr (kPair) return Multiply(x, y);
        return LaneNumber{hn::Mul(x.real, y.real), zero};
      };
      const LaneNumber a = {hn::Sub(h.Get(i, i), value.real), hn::Neg(wi)}, lower = rest(i, i + 1);
      LaneNumber found = times(lower, inverse(a));
      auto block = hn::Lt(zero, zero);
      LaneNumber above = {zero, zero};
      if (i > 0) {
        const auto c = h.Get(i, i - 1);
        block = hn::And(hn::Ne(c, zero), hn::Not(solved));
        if (!hn::AllFalse(d, block)) {
          // Gaussian elimination of [a b; c a] with the larger pivot.
          const auto b = h.Get(i - 1, i);
          const LaneNumber upper = rest(i - 1, i + 1), of_b = {b, zero}, of_c = {c, zero};
          const auto swap = hn::Ge(hn::Abs(c), SumOfMagnitudes(a));
          const LaneNumber pivot = inverse(Select(swap, of_c, a)), next = Select(swap, a, of_b);
          const LaneNumber of_pivot = Select(swap, lower, upper), of_other = Select(swap, upper, lower);
          const LaneNumber factor = times(Select(swap, a, of_c), pivot);
          const LaneNumber divisor = Subtract(Select(swap, of_b, a), times(factor, next));
          const LaneNumber second = times(Subtract(of_other, times(factor, of_pivot)), inverse(divisor));
          above = times(Subtract(of_pivot, times(next, second)), pivot);
          found = Select(block, second, found);
          above = Select(block, above, {zero, zero});
        }
      }
      const LaneNumber before = {x_.Get(i, 0), x_.Get(i, 1)};
      SetNumber(x_, i, Select(solved, before, found));
      if (i > 0) SetNumber(x_, i - 1, above);
      solved = block;
      const auto largest = hn::Max(SumOfMagnitudes(found), SumOfMagnitudes(above));
      const auto grown = hn::Gt(largest, RealsOf(0x1p200));
      if (hn::AllFalse(d, grown)) continue;
      const auto factor = hn::IfThenElse(grown, hn::Div(RealsOf(1), largest), RealsOf(1));
      for (int64_t j = std::max<int64_t>(i - 1, 0); j < end; ++j) {
        SetNumber(x_, j, {hn::Mul(x_.Get(j, 0), factor), hn::Mul(x_.Get(j, 1), factor)});
      }
    }
  }

  // Multiplies the vector of the Schur form by those of the similarity, normalizes it as eig::Normalize, and stores it
  // and its conjugate.
  template <bool kPair>
  HWY_INLINE void FinishVector(int64_t k, int64_t end, RealMask second) const {
    const RealTag d;
    const auto zero = hn::Zero(d);
    auto largest = zero;
    for (int64_t i = 0; i < size_; ++i) {
      auto real = zero, imaginary = zero;
      for (int64_t j = 0; j < end; ++j) {
        real = hn::MulAdd(vectors_.Get(j, i), x_.Get(j, 0), real);
        if constexpr (kPair) imaginary = hn::MulAdd(vectors_.Get(j, i), x_.Get(j, 1), imaginary);
      }
      const auto factor = factors_.Get(0, i);
      real = hn::Mul(real, factor);
      if constexpr (kPair) imaginary = hn::Mul(imaginary, factor);
      largest = hn::Max(largest, hn::Max(hn::Abs(real), hn::Abs(imaginary)));
      SetNumber(v_, i, {real, imaginary});
    }
    const auto inverse = hn::Div(RealsOf(1), largest);
    auto squares = zero, most = zero;
    for (int64_t i = 0; i < size_; ++i) {
      const auto real = hn::Mul(v_.Get(i, 0), inverse), imaginary = hn::Mul(v_.Get(i, 1), inverse);
      const auto square = hn::MulAdd(real, real, hn::Mul(imaginary, imaginary));
      SetNumber(v_, i, {real, imaginary});
      sums_.Set(0, i, square);
      squares = hn::Add(squares, square);
      most = hn::Max(most, square);
    }
    most = hn::Mul(most, RealsOf(0.999 * 0.999));
    LaneNumber pivot = {zero, zero};
    auto of_pivot = zero, index = zero;
    for (int64_t i = size_ - 1; i >= 0; --i) {
      const auto square = sums_.Get(0, i);
      const auto chosen = hn::Ge(square, most);
      pivot = Select(chosen, NumberAt(v_, i), pivot);
      of_pivot = hn::IfThenElse(chosen, square, of_pivot);
      index = hn::IfThenElse(chosen, RealsOf(static_cast<double>(i)), index);
    }
    const auto factor = hn::Div(RealsOf(1), hn::Mul(hn::Sqrt(of_pivot), hn::Sqrt(squares)));
    const LaneNumber by = {hn::Mul(pivot.real, factor), hn::Neg(hn::Mul(pivot.imaginary, factor))};
    for (int64_t i = 0; i < size_; ++i) {
      LaneNumber x;
      if constexpr (kPair) {
        x = Multiply(NumberAt(v_, i), by);
        x.imaginary = hn::IfThenZeroElse(hn::Eq(index, RealsOf(static_cast<double>(i))), x.imaginary);
      } else {
        x = {hn::Mul(v_.Get(i, 0), by.real), zero};
      }
      const LaneNumber before = {basis.Get(i, 2 * k), basis.Get(i, 2 * k + 1)};
      x = Select(second, before, x);
      basis.Set(i, 2 * k, x.real);
      basis.Set(i, 2 * k + 1, x.imaginary);
      if constexpr (kPair) {
        basis.Set(i, 2 * k + 2, x.real);
        basis.Set(i, 2 * k + 3, hn::Neg(x.imaginary));
      }
    }
  }

  int64_t size_;
  bool with_vectors_;
  LaneMatrices vectors_, factors_, x_, v_, sums_;
};

/// The number of doubles that EigGroup's `memory` must have space for.
template <class T>
int64_t EigGroupDoubles(const GeneralMatrices<T>& matrices) {
  return GeneralLanes::Doubles(matrices.size);
}

/// Decomposes `count` matrices, except for those with unusual values: their done[] is 0.
template <class T>
void EigGroup(const GeneralMatrices<T>& matrices, int64_t first, int64_t count, double* memory, double* done) {
  const int64_t size = matrices.size;
  const GeneralLanes lanes(size, matrices.with_vectors, memory);
  lanes.h.Read(matrices.from + first * size * size, count);
  StoreLanes(lanes.Decompose(), done);
  lanes.values.Write(count, matrices.values + 2 * first * size);
  if (matrices.with_vectors) lanes.basis.Write(count, matrices.basis + 2 * first * size * size);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
