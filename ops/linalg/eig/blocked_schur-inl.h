// SPDX-License-Identifier: Apache-2.0
// The real Schur form of large Hessenberg matrices: the QR algorithm with many shifts, whose bulges are chased through
// windows of the matrix, and with early deflation. The rest of the matrix is multiplied by each window's orthogonal
// factor. Compiled once per instruction set; include it from a kernel file.
//
// K. Braman, R. Byers and R. Mathias, "The multishift QR algorithm", parts I and II, 2002.
#if defined(POLYOP_OPS_LINALG_EIG_BLOCKED_SCHUR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_LINALG_EIG_BLOCKED_SCHUR_INL_H_
#undef POLYOP_OPS_LINALG_EIG_BLOCKED_SCHUR_INL_H_
#else
#define POLYOP_OPS_LINALG_EIG_BLOCKED_SCHUR_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/simd.h"
#include "ops/linalg/blocked-inl.h"
#include "ops/linalg/eig/schur.h"
#include "ops/linalg/householder.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {
namespace blocked {

// linalg::PlainReflections in vectors of the instruction set.
struct ReflectionOps : VectorOps {
  static HWY_NOINLINE void ReflectFewRows(const double* v, double tau, int64_t count, double* row, int64_t stride,
                                          int64_t columns) {
    const Tag d;
    const int64_t lanes = LanesOf();
    double *const second = row + stride, *const third = second + stride;
    const auto t0 = hn::Set(d, tau), t1 = hn::Set(d, tau * v[1]), v1 = hn::Set(d, v[1]);
    int64_t j = 0;
    if (count == 3) {
      const auto t2 = hn::Set(d, tau * v[2]), v2 = hn::Set(d, v[2]);
      for (; j + lanes <= columns; j += lanes) {
        const auto x = hn::LoadU(d, row + j), y = hn::LoadU(d, second + j), z = hn::LoadU(d, third + j);
        const auto sum = hn::MulAdd(t2, z, hn::MulAdd(t1, y, hn::Mul(t0, x)));
        hn::StoreU(hn::Sub(x, sum), d, row + j);
        hn::StoreU(hn::NegMulAdd(sum, v1, y), d, second + j);
        hn::StoreU(hn::NegMulAdd(sum, v2, z), d, third + j);
      }
    } else {
      for (; j + lanes <= columns; j += lanes) {
        const auto x = hn::LoadU(d, row + j), y = hn::LoadU(d, second + j);
        const auto sum = hn::MulAdd(t1, y, hn::Mul(t0, x));
        hn::StoreU(hn::Sub(x, sum), d, row + j);
        hn::StoreU(hn::NegMulAdd(sum, v1, y), d, second + j);
      }
    }
    linalg::PlainReflections::ReflectFewRows(v, tau, count, row + j, stride, columns - j);
  }
};

/// The Schur form of one matrix.
class SchurForm {
 public:
  /// Blocks without more rows are iterated with double shifts, as in LAPACK: these determine the order.
  static constexpr int64_t kMaxUndivided = 75;

  /// Returns how many numbers of memory are needed, next to those of the products.
  static int64_t Doubles(int64_t size) { return size * kMaxWindow + 4 * kMaxWindow * kMaxWindow + 6 * size; }

  /// The rows of `vectors`, unless it is null, are multiplied by the similarity.
  SchurForm(const Products& products, const linalg::SquareMatrix& h, double* vectors, double* memory)
      : products_(products),
        h_(h),
        vectors_(vectors),
        factor_(memory),
        window_(factor_ + kMaxWindow * kMaxWindow),
        copy_(window_ + kMaxWindow * kMaxWindow),
        numbers_(copy_ + h.size * kMaxWindow) {}

  /// Computes what linalg::SchurOfHessenberg does.
  bool Decompose(const linalg::Balance& balance, double* real, double* imaginary) const {
    const int64_t size = h_.size, first = balance.first;
    for (int64_t i = 0; i < size; ++i) {
      real[i] = h_.At(i, i);
      imaginary[i] = 0;
    }
    int64_t last = balance.last;
    const int64_t max_steps = 30 * std::max<int64_t>(10, last - first + 1);
    for (int64_t step = 0, futile = 0; last >= first; ++step) {
      if (step == max_steps) return false;
      const int64_t start = linalg::StartOfBlock(h_, balance, last);
      if (start > first) h_.At(start, start - 1) = 0;
      const int64_t length = last - start + 1;
      if (length <= kMaxUndivided) {
        if (!DecomposeWindow(start, length, real, imaginary)) return false;
        last = start - 1;
        futile = 0;
        continue;
      }
      const int64_t bulges = Bulges(length), size_of_window = std::min(length, 3 * bulges + 2);
      const int64_t deflated = Deflate(start, last, size_of_window, real, imaginary);
      futile = deflated == 0 ? futile + 1 : 0;
      last -= deflated;
      if (deflated < 0) return false;
      if (100 * deflated > kEnough * size_of_window) continue;
      Sweep(start, last, bulges, futile, real, imaginary);
    }
    return true;
  }

 private:
  /// Rows of the largest window: its factor must fit into one packed block of a product.
  static constexpr int64_t kMaxWindow = 160, kMaxBulges = 24;
  /// A sweep is left out if this percentage of a window deflates.
  static constexpr int64_t kEnough = 14;
  static_assert(kMaxWindow <= kDepth);

  static int64_t Bulges(int64_t length) {
    return length < 150 ? 8 : length < 400 ? 12 : length < 800 ? 16 : kMaxBulges;
  }

  /// Multiplies the rest of the matrix by the orthogonal factor of the window of `count` rows from `first` on, whose
  /// rows in factor_ are the new basis: elements next to the diagonal block are left to the caller. [start, last] are
  /// the active rows.
  void Apply(int64_t first, int64_t count, int64_t start, int64_t last) const {
    const int64_t size = h_.size, top = vectors_ != nullptr ? 0 : start, right = vectors_ != nullptr ? size : last + 1;
    for (int64_t i = 0; i < count * count; ++i) factor_[i] = -factor_[i];
    for (int64_t i = 0; i < count; ++i) factor_[i * (count + 1)] += 1;  // x - (1 - U) x = U x, in place
    const View rows{factor_, count, 1}, columns{factor_, 1, count};
    double* const after = h_.Row(first) + first + count;
    products_.Subtract(count, right - first - count, count, rows, {after, h_.stride, 1}, after, h_.stride);
    const int64_t height = first - top;
    double* const above = h_.Row(top) + first;
    for (int64_t i = 0; i < height; ++i) std::copy_n(above + i * h_.stride, count, copy_ + i * count);
    products_.Subtract(height, count, count, {copy_, count, 1}, columns, above, h_.stride);
    if (vectors_ == nullptr) return;
    double* const vectors = vectors_ + first * size;
    products_.Subtract(count, size, count, rows, {vectors, size, 1}, vectors, size);
  }

  void CopyWindow(int64_t first, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(h_.Row(first + i) + first, count, window_ + i * count);
      std::fill_n(factor_ + i * count, count, 0.0);
      factor_[i * (count + 1)] = 1;
    }
  }
  void RestoreWindow(int64_t first, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) std::copy_n(window_ + i * count, count, h_.Row(first + i) + first);
  }

  /// Computes the Schur form of a block.
  bool DecomposeWindow(int64_t first, int64_t count, double* real, double* imaginary) const {
    CopyWindow(first, count);
    double* const unused = numbers_;
    if (!linalg::SchurOfHessenberg<ReflectionOps>({window_, count, count}, {0, count - 1, unused},
                                                  vectors_ != nullptr ? factor_ : nullptr, real + first,
                                                  imaginary + first)) {
      return false;
    }
    RestoreWindow(first, count);
    if (vectors_ != nullptr) Apply(first, count, first, first + count - 1);
    return true;
  }

  /// Early deflation: makes the last `count` rows of a block triangular, so that the element to the left of it becomes
  /// a column, and returns how many of its last elements are negligible. The eigenvalues of the other rows are the
  /// shifts of the next sweep. Returns -1 if the window does not converge.
  int64_t Deflate(int64_t start, int64_t last, int64_t count, double* real, double* imaginary) const {
    constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
    const int64_t first = last - count + 1;
    const linalg::SquareMatrix t{window_, count, count};
    CopyWindow(first, count);
    double* const unused = numbers_;
    if (!linalg::SchurOfHessenberg<ReflectionOps>(t, {0, count - 1, unused}, factor_, real + first,
                                                  imaginary + first)) {
      return -1;
    }
    const double link = first > start ? h_.At(first, first - 1) : 0;
    const double small = std::numeric_limits<double>::min() * (static_cast<double>(h_.size) / kEpsilon);
    int64_t kept = count;
    while (kept > 0) {
      const int64_t k = kept - 1;
      const bool pair = k > 0 && t.At(k, k - 1) != 0;
      double magnitude = t.Magnitude(k, k), spike = std::fabs(link * factor_[k * count]);
      if (pair) {
        magnitude += std::sqrt(t.Magnitude(k, k - 1)) * std::sqrt(t.Magnitude(k - 1, k));
        spike = std::max(spike, std::fabs(link * factor_[(k - 1) * count]));
      }
      if (magnitude == 0) magnitude = std::fabs(link);
      if (!(spike <= std::max(small, kEpsilon * magnitude))) break;
      kept -= pair ? 2 : 1;
    }
    if (kept == count) return 0;
    if (kept > 0) {
      // A reflection makes the rest of the column 0 except for its first element.
      double *const v = numbers_, *const sums = v + kMaxWindow;
      for (int64_t i = 0; i < kept; ++i) v[i] = factor_[i * count];
      const double tau = linalg::FindReflection(v, kept);
      v[0] = 1;
      ReflectRowsAndColumns(t, kept, v, tau, sums);
      linalg::ReflectRows<VectorOps>(v, tau, kept, factor_, count, count, sums);
      linalg::ReduceToHessenberg<VectorOps>(t, {0, kept - 1, nullptr}, factor_, numbers_);
      if (first > start) h_.At(first, first - 1) = link * factor_[0];
    } else if (first > start) {
      h_.At(first, first - 1) = 0;
    }
    RestoreWindow(first, count);
    Apply(first, count, start, last);
    return count - kept;
  }

  /// Applies the reflection to the first `kept` rows and columns.
  static void ReflectRowsAndColumns(const linalg::SquareMatrix& t, int64_t kept, const double* v, double tau,
                                    double* sums) {
    for (int64_t i = 0; i < kept; ++i)
      VectorOps::SubtractRow(v, tau * VectorOps::Dot(t.Row(i), v, kept), kept, t.Row(i));
    linalg::ReflectRows<VectorOps>(v, tau, kept, t.elements, t.stride, t.size, sums);
  }

  /// The shifts of a bulge: real ones, or conjugates whose real parts are equal.
  struct ShiftPair {
    double first, second, imaginary;
  };

  /// Chooses the shifts of at most `bulges` bulges from the eigenvalues before `last`, or others if many steps were
  /// futile. Returns the number of bulges.
  int64_t ChooseShifts(int64_t start, int64_t last, int64_t bulges, int64_t futile, const double* real,
                       const double* imaginary, std::array<ShiftPair, kMaxBulges>& shifts) const {
    int64_t count = 0;
    if (futile > 0 && futile % 6 == 0) {  // other shifts end a cycle
      for (int64_t i = last; count < bulges && i - 2 >= start; i -= 2) {
        const double s = h_.Magnitude(i, i - 1) + h_.Magnitude(i - 1, i - 2), d = 0.75 * s + h_.At(i, i);
        const linalg::Shifts pair = linalg::ShiftsOf(d, -0.4375 * s, s, d);
        shifts[static_cast<size_t>(count++)] = {pair.real, pair.real, pair.imaginary};
      }
      return count;
    }
    double single = 0;
    bool has_single = false;
    for (int64_t i = last; count < bulges && i > last - 2 * bulges && i > start; --i) {
      if (imaginary[i] != 0) {
        shifts[static_cast<size_t>(count++)] = {real[i], real[i], std::fabs(imaginary[i])};
        --i;
      } else if (has_single) {
        shifts[static_cast<size_t>(count++)] = {real[i], single, 0};
        has_single = false;
      } else {
        single = real[i];
        has_single = true;
      }
    }
    if (count == 0) shifts[static_cast<size_t>(count++)] = {single, single, 0};
    return count;
  }

  /// Chases bulges through the active rows [start, last], three rows apart.
  void Sweep(int64_t start, int64_t last, int64_t bulges, int64_t futile, const double* real,
             const double* imaginary) const {
    std::array<ShiftPair, kMaxBulges> shifts;
    bulges = std::min(bulges, (last - start + 1) / 6);
    bulges = ChooseShifts(start, last, bulges, futile, real, imaginary, shifts);
    const int64_t chain = 3 * (bulges - 1), end = last - 1 - start + chain + 1;
    const int64_t steps = std::min(kMaxWindow - chain - 8, std::max<int64_t>(chain, 24));
    for (int64_t time = 0; time < end; time += steps) {
      const int64_t until = std::min(time + steps, end);
      const int64_t top = std::max(start, start + time - chain - 1);
      const int64_t bottom = std::min(last, start + until - 1 + 3), count = bottom - top + 1;
      CopyWindow(top, count);
      const linalg::SquareMatrix w{window_, count, count};
      for (int64_t t = time; t < until; ++t) {
        for (int64_t b = 0; b < bulges; ++b) {
          const int64_t row = start + t - 3 * b;
          if (row < start) break;
          if (row >= last) continue;
          const int64_t origin = std::max(start, start + time - 3 * b) - top;
          MoveBulge(w, row - top, row == start, last - row + 1, origin, b, shifts[static_cast<size_t>(b)]);
        }
      }
      RestoreWindow(top, count);
      Apply(top, count, start, last);
    }
  }

  /// Moves bulge b, which was in row `origin` of the window at first, from row k to the next one, or introduces it.
  void MoveBulge(const linalg::SquareMatrix& w, int64_t k, bool introduce, int64_t rows, int64_t origin, int64_t b,
                 const ShiftPair& shifts) const {
    const int64_t count = std::min<int64_t>(3, rows);
    double v[3];
    if (introduce) {
      const double h11 = w.At(k, k), h21 = w.At(k + 1, k), h12 = w.At(k, k + 1), h22 = w.At(k + 1, k + 1);
      const double scale = std::fabs(h11 - shifts.second) + std::fabs(shifts.imaginary) + std::fabs(h21);
      if (scale == 0) return;
      const double below = h21 / scale;
      v[0] = (h11 - shifts.first) * ((h11 - shifts.second) / scale) + shifts.imaginary * (shifts.imaginary / scale) +
             h12 * below;
      v[1] = below * (h11 + h22 - shifts.first - shifts.second);
      v[2] = below * w.At(k + 2, k + 1);
    } else {
      for (int64_t i = 0; i < count; ++i) v[i] = w.At(k + i, k - 1);
    }
    const double tau = linalg::FindReflection(v, count);
    if (!introduce) {
      w.At(k, k - 1) = v[0];
      for (int64_t i = 1; i < count; ++i) w.At(k + i, k - 1) = 0;
    }
    if (tau == 0) return;
    ReflectionOps::ReflectFewRows(v, tau, count, w.Row(k) + k, w.stride, w.size - k);
    linalg::ReflectFewColumns(v, tau, count, w.elements + k, w.stride, std::min(k + 4, w.size));
    const int64_t to = std::min(w.size, k + 3 + 2 * b);
    ReflectionOps::ReflectFewRows(v, tau, count, factor_ + k * w.size + origin, w.size, to - origin);
  }

  const Products& products_;
  linalg::SquareMatrix h_;
  double *vectors_, *factor_, *window_, *copy_, *numbers_;
};

}  // namespace blocked
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
