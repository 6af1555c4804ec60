// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and eigenvectors of large symmetric tridiagonal matrices by dividing them (Cuppen's method with the
// deflation and the vectors of Gu and Eisenstat), in double precision: most operations are those of matrix products.
// Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_LINALG_DIVIDE_TRIDIAGONAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_LINALG_DIVIDE_TRIDIAGONAL_INL_H_
#undef POLYOP_OPS_LINALG_DIVIDE_TRIDIAGONAL_INL_H_
#else
#define POLYOP_OPS_LINALG_DIVIDE_TRIDIAGONAL_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "kernels/cpu/simd.h"
#include "ops/linalg/blocked-inl.h"
#include "ops/linalg/symmetric_eigen.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {
namespace blocked {

/// The roots of 1 / rho + sum of squares[j] / (poles[j] - x), one after each pole. Requires: `count` poles in ascending
/// order, rho > 0, no square is 0.
struct SecularEquation {
  const double *poles, *squares;
  int64_t count;
  double rho;

  /// Finds the root after pole k. differences[j] receives poles[j] minus the root, with a small relative error. Returns
  /// the root.
  double Solve(int64_t k, double* differences) const {
    constexpr int kMaxSteps = 100;  // usually 3 to 6 suffice; bisections alone would need about 60
    constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
    const bool is_last = k + 1 == count;
    double sum_of_squares = 0;
    for (int64_t j = 0; is_last && j < count; ++j) sum_of_squares += squares[j];
    const double gap = is_last ? rho * sum_of_squares : poles[k + 1] - poles[k];
    // The root is computed relative to the nearer pole.
    Shift(poles[k], differences);
    const Sums middle = At(k, gap / 2, differences);
    const bool from_left = is_last || middle.Value(rho) >= 0;
    const int64_t origin = from_left ? k : k + 1;
    double low = from_left ? 0 : -gap / 2, high = is_last ? gap : from_left ? gap / 2 : 0;
    if (is_last && middle.Value(rho) < 0) low = gap / 2;
    if (is_last && middle.Value(rho) >= 0) high = gap / 2;
    if (!from_left) Shift(poles[origin], differences);
    double x = low + (high - low) / 2;
    for (int step = 0; step < kMaxSteps; ++step) {
      const Sums sums = At(k, x, differences);
      const double value = sums.Value(rho);
      const double error = 8 * kEpsilon * (1 / rho + sums.right - sums.left) + kEpsilon * std::fabs(x) * sums.Slope();
      if (std::fabs(value) <= error) break;
      (value < 0 ? low : high) = x;
      // The root of the sum of a constant and one fraction each for the poles on both sides of x.
      const double left = differences[k] - x, right = is_last ? 0 : differences[k + 1] - x;
      const double s = left * left * sums.left_slope, t = right * right * sums.right_slope;
      const double constant = value - left * sums.left_slope - right * sums.right_slope;
      double change = 0;
      if (is_last) {
        change = left + s / constant;
      } else {
        const double a = constant * (left + right) + s + t, b = left * right * value;
        const double root = std::sqrt(std::max(a * a - 4 * b * constant, 0.0));
        change = a <= 0 ? (a - root) / (2 * constant) : 2 * b / (a + root);
      }
      double next = x + change;
      if (!(next > low && next < high)) next = low + (high - low) / 2;
      if (next == x || next == low || next == high) break;
      x = next;
    }
    for (int64_t j = 0; j < count; ++j) differences[j] -= x;
    return poles[origin] + x;
  }

 private:
  // The sums of the fractions of the poles up to k and after it, and their derivatives.
  struct Sums {
    double left = 0, left_slope = 0, right = 0, right_slope = 0;

    double Value(double rho) const { return 1 / rho + left + right; }
    double Slope() const { return left_slope + right_slope; }
  };

  void Shift(double origin, double* differences) const {
    for (int64_t j = 0; j < count; ++j) differences[j] = poles[j] - origin;
  }

  Sums At(int64_t k, double x, const double* differences) const {
    Sums sums;
    AddFractions(0, k + 1, x, differences, sums.left, sums.left_slope);
    AddFractions(k + 1, count, x, differences, sums.right, sums.right_slope);
    return sums;
  }

  HWY_NOINLINE void AddFractions(int64_t begin, int64_t end, double x, const double* differences, double& sum,
                                 double& slope) const {
    const Tag d;
    const int64_t lanes = LanesOf();
    auto sums = hn::Zero(d), slopes = sums;
    int64_t j = begin;
    for (; j + lanes <= end; j += lanes) {
      const auto inverse = hn::Div(hn::Set(d, 1.0), hn::Sub(hn::LoadU(d, differences + j), hn::Set(d, x)));
      const auto fraction = hn::Mul(hn::LoadU(d, squares + j), inverse);
      sums = hn::Add(sums, fraction);
      slopes = hn::MulAdd(fraction, inverse, slopes);
    }
    sum = hn::ReduceSum(d, sums);
    slope = hn::ReduceSum(d, slopes);
    for (; j < end; ++j) {
      const double inverse = 1 / (differences[j] - x);
      sum += squares[j] * inverse;
      slope += squares[j] * inverse * inverse;
    }
  }
};

/// Decomposes tridiagonal matrices.
class TridiagonalEigen {
 public:
  /// Returns how many numbers of memory are needed, next to those of the products.
  static int64_t Doubles(int64_t size) { return size * (2 * size + MergeMemory::kArrays); }

  TridiagonalEigen(const Products& products, int64_t size, double* vectors, double* memory)
      : products_(products),
        stride_(size),
        vectors_(vectors),
        rows_(memory),
        matrix_(rows_ + size * size),
        numbers_(matrix_ + size * size) {}

  /// Overwrites the diagonal by the eigenvalues in any order, and the rows of `vectors`, a matrix of zeros at first, by
  /// the eigenvectors. `off` is overwritten, and has an element for each row. Returns false if the algorithm does not
  /// converge.
  bool Decompose(double* diagonal, double* off) const { return Decompose(0, stride_, diagonal, off); }

 private:
  static constexpr int64_t kMaxUndivided = 32;

  double* Row(int64_t i) const { return vectors_ + i * stride_; }

  bool Decompose(int64_t first, int64_t size, double* diagonal, double* off) const {
    if (size <= kMaxUndivided) {
      for (int64_t i = first; i < first + size; ++i) Row(i)[i] = 1;
      off[first + size - 1] = 0;
      const auto rotate = [&](int64_t i, double c, double s) {
        VectorOps::Rotate(Row(first + i) + first, Row(first + i + 1) + first, size, c, s);
      };
      return linalg::DiagonalizeTridiagonal(diagonal + first, off + first, size, rotate);
    }
    const int64_t half = size / 2, middle = first + half;
    const double link = off[middle - 1], rho = std::fabs(link);
    diagonal[middle - 1] -= rho;
    diagonal[middle] -= rho;
    if (!Decompose(first, half, diagonal, off) || !Decompose(middle, size - half, diagonal, off)) return false;
    Merge({first, half, size, diagonal + first}, 2 * rho, link < 0 ? -1 : 1);
    return true;
  }

  // Which elements of a row are not 0: those of the first half, of both or of the second half.
  enum Kind { kFirst, kBoth, kSecond, kDeflated };

  // Two decomposed matrices, one after the other, that become one of `size` rows.
  struct Halves {
    int64_t first;   // the first row in `vectors`
    int64_t half;    // rows of the first one
    int64_t size;    // rows of both
    double* values;  // the eigenvalues
  };

  // The arrays of a merge, of `size` elements each.
  struct MergeMemory {
    static constexpr int64_t kArrays = 8;

    double* z;        // the vector of the update, in the basis of the halves' eigenvectors
    double* poles;    // the kept eigenvalues
    double* squares;  // of their elements of z
    double* exact;    // the elements of the z for which the computed roots are exact
    double* line;     // the new eigenvalues
    int64_t* order;   // the eigenvalues in ascending order; then the position of each kept one's row in rows_
    int64_t* kinds;   // the Kind of each row
    int64_t* kept;    // the eigenvalues that are not deflated, in ascending order

    MergeMemory(double* numbers, int64_t size)
        : z(numbers),
          poles(z + size),
          squares(poles + size),
          exact(squares + size),
          line(exact + size),
          order(reinterpret_cast<int64_t*>(line + size)),
          kinds(order + size),
          kept(kinds + size) {}
  };

  // The ends of the rows of each Kind in rows_.
  using Ends = std::array<int64_t, 5>;

  // Adds rho z z^T to the diagonal matrix of the eigenvalues. z, of length 1, has the last elements of the first half's
  // vectors, and the first ones of the second half's, times `sign`.
  void Merge(const Halves& halves, double rho, double sign) const {
    const int64_t first = halves.first, half = halves.half, size = halves.size;
    const MergeMemory m(numbers_, size);
    double largest = 0, largest_z = 0;
    for (int64_t i = 0; i < size; ++i) {
      m.z[i] = (i < half ? Row(first + i)[first + half - 1] : sign * Row(first + i)[first + half]) / std::sqrt(2.0);
      m.kinds[i] = i < half ? kFirst : kSecond;
      m.order[i] = i;
      largest = std::max(largest, std::fabs(halves.values[i]));
      largest_z = std::max(largest_z, std::fabs(m.z[i]));
    }
    std::sort(m.order, m.order + size, [&](int64_t a, int64_t b) { return halves.values[a] < halves.values[b]; });
    const double tolerance = 8 * std::numeric_limits<double>::epsilon() * std::max(largest, largest_z);
    const int64_t count = Deflate(halves, rho, tolerance, m);
    for (int64_t j = 0; j < count; ++j) {
      m.poles[j] = halves.values[m.kept[j]];
      m.squares[j] = m.z[m.kept[j]] * m.z[m.kept[j]];
    }
    const Ends ends = MoveRows(halves, count, m);
    FindVectors(count, rho, m);
    for (int64_t i = 0; i < size; ++i) {
      halves.values[i] = m.line[i];
      double* const row = Row(first + i) + first;
      if (i < count) {
        std::fill_n(row, size, 0.0);
      } else {
        std::copy_n(rows_ + i * size, size, row);
      }
    }
    // Products with the kept rows, without the elements that are 0.
    const int64_t both = ends[kFirst], first_end = ends[kBoth];
    products_.Subtract(count, half, first_end, {matrix_, count, 1}, {rows_, size, 1}, Row(first) + first, stride_);
    products_.Subtract(count, size - half, count - both, {matrix_ + both, count, 1},
                       {rows_ + both * size + half, size, 1}, Row(first) + first + half, stride_);
  }

  // Sets `kept` and returns their number. An eigenvector stays one if its element of z is tiny, which a rotation
  // attains for nearly equal eigenvalues.
  int64_t Deflate(const Halves& halves, double rho, double tolerance, const MergeMemory& m) const {
    const int64_t first = halves.first, size = halves.size;
    double *const values = halves.values, *const z = m.z;
    int64_t count = 0, pending = -1;
    for (int64_t n = 0; n < size; ++n) {
      const int64_t i = m.order[n];
      if (rho * std::fabs(z[i]) <= tolerance) {
        m.kinds[i] = kDeflated;
        continue;
      }
      if (pending >= 0) {
        const double length = std::hypot(z[i], z[pending]), c = z[i] / length, s = -z[pending] / length;
        if (std::fabs((values[i] - values[pending]) * c * s) <= tolerance) {
          VectorOps::Rotate(Row(first + pending) + first, Row(first + i) + first, size, c, -s);
          const double low = values[pending], high = values[i];
          values[pending] = low * c * c + high * s * s;
          values[i] = low * s * s + high * c * c;
          z[i] = length;
          if (m.kinds[i] != m.kinds[pending]) m.kinds[i] = kBoth;
          m.kinds[pending] = kDeflated;
        } else {
          m.kept[count++] = pending;
        }
      }
      pending = i;
    }
    if (pending >= 0) m.kept[count++] = pending;
    return count;
  }

  // Copies the rows to rows_ in the order of their kinds. order[] receives the position of each kept one, line[] the
  // eigenvalues of the others.
  Ends MoveRows(const Halves& halves, int64_t count, const MergeMemory& m) const {
    const int64_t size = halves.size;
    Ends ends{};
    int64_t position = 0;
    for (const Kind kind : {kFirst, kBoth, kSecond, kDeflated}) {
      for (int64_t n = 0; n < size; ++n) {
        const int64_t i = kind == kDeflated ? n : n < count ? m.kept[n] : -1;
        if (i < 0 || m.kinds[i] != kind) continue;
        std::copy_n(Row(halves.first + i) + halves.first, size, rows_ + position * size);
        if (kind == kDeflated) {
          m.line[position] = halves.values[i];
        } else {
          m.order[n] = position;
        }
        ++position;
      }
      ends[static_cast<size_t>(kind)] = position;
    }
    return ends;
  }

  // Sets the first `count` eigenvalues, and the rows of matrix_ to their eigenvectors, negated, in the basis of the
  // kept rows. Row i is first the poles minus root i. The elements of an eigenvector times these differences are those
  // of the z for which the computed roots are exact.
  void FindVectors(int64_t count, double rho, const MergeMemory& m) const {
    const SecularEquation equation{m.poles, m.squares, count, rho};
    products_.ForRange(count, 5 * static_cast<double>(count), [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t i = begin; i < end; ++i) m.line[i] = equation.Solve(i, matrix_ + i * count);
    });
    std::fill_n(m.exact, count, 1.0);
    products_.ForRange(count, static_cast<double>(count), [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t i = 0; i < count; ++i) {
        const double* const differences = matrix_ + i * count;
        for (int64_t j = begin; j < end; ++j) {
          m.exact[j] *= i == j ? differences[j] : differences[j] / (m.poles[j] - m.poles[i]);
        }
      }
    });
    for (int64_t j = 0; j < count; ++j) {
      m.exact[j] = std::copysign(std::sqrt(std::fabs(m.exact[j])), m.z[m.kept[j]]);
    }
    for (int64_t i = 0; i < count; ++i) {
      double *const vector = matrix_ + i * count, *const elements = m.squares;
      for (int64_t j = 0; j < count; ++j) elements[j] = m.exact[j] / vector[j];
      const double factor = -1 / linalg::LengthOf(elements, count);
      for (int64_t j = 0; j < count; ++j) vector[m.order[j]] = factor * elements[j];
    }
  }

  Products products_;
  int64_t stride_;
  double *vectors_, *rows_, *matrix_, *numbers_;
};

}  // namespace blocked
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
