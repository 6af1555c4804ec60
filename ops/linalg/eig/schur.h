// SPDX-License-Identifier: Apache-2.0
// The real Schur form of a square matrix: an orthogonal similarity makes it upper triangular, except for blocks of 2 x
// 2 elements with conjugate eigenvalues. CPU and GPU share this code.
//
// B. N. Parlett and C. Reinsch, "Balancing a matrix for calculation of eigenvalues and eigenvectors", 1969.
// J. G. F. Francis, "The QR transformation", 1961. M. Ahues and F. Tisseur, "A new deflation criterion for the QR
// algorithm", 1997. The choices that determine the order of eigenvalues are those of LAPACK's gebal, gehrd and lahqr.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/host_device.h"
#include "ops/linalg/householder.h"
#include "ops/linalg/vectors.h"

namespace polyop::linalg {

/// A square matrix stored by rows, which are `stride` elements apart.
struct SquareMatrix {
  double* elements;
  int64_t size, stride;

  POLYOP_HD double* Row(int64_t i) const { return elements + i * stride; }
  POLYOP_HD double& At(int64_t i, int64_t j) const { return elements[i * stride + j]; }
  POLYOP_HD double Magnitude(int64_t i, int64_t j) const { return std::fabs(At(i, j)); }
};

/// A balanced matrix: rows and columns outside of [first, last] were exchanged until those before and after it were
/// triangular, and those in it were scaled.
struct Balance {
  int64_t first, last;
  double* factors;  // for each row and column: what it was exchanged with, or what it was scaled by
};

POLYOP_HD inline void ExchangeRowsAndColumns(const SquareMatrix& a, int64_t i, int64_t j, int64_t rows,
                                             int64_t first_column) {
  if (i == j) return;
  SwapElements(a.elements + i, a.elements + j, rows, a.stride);
  SwapElements(a.Row(i) + first_column, a.Row(j) + first_column, a.size - first_column);
}

/// Returns whether row `i`, or column `i`, has only zeros in [first, last] outside of the diagonal.
POLYOP_HD inline bool Isolated(const SquareMatrix& a, int64_t i, bool row, int64_t first, int64_t last) {
  for (int64_t j = first; j <= last; ++j) {
    if (j != i && (row ? a.At(i, j) : a.At(j, i)) != 0) return false;
  }
  return true;
}

/// Moves rows and columns with an isolated eigenvalue to the ends.
POLYOP_HD inline void Permute(const SquareMatrix& a, Balance& balance) {
  int64_t &first = balance.first, &last = balance.last;
  for (int64_t i = last; i >= 0 && last > 0;) {
    if (!Isolated(a, i, true, 0, last)) {
      --i;
      continue;
    }
    balance.factors[last] = static_cast<double>(i);
    ExchangeRowsAndColumns(a, i, last, last + 1, first);
    i = --last;
  }
  for (int64_t j = first; j <= last && first < last;) {
    if (!Isolated(a, j, false, first, last)) {
      ++j;
      continue;
    }
    balance.factors[first] = static_cast<double>(j);
    ExchangeRowsAndColumns(a, j, first, last + 1, first);
    j = ++first;
  }
}

/// Scales rows and columns by powers of two until their lengths are similar.
POLYOP_HD inline void Scale(const SquareMatrix& a, const Balance& balance) {
  constexpr int kMaxSweeps = 60;
  constexpr double kTiny = 0x1p-500, kHuge = 0x1p500;
  for (int64_t i = balance.first; i <= balance.last; ++i) balance.factors[i] = 1;
  bool scaled = true;
  for (int sweep = 0; scaled && sweep < kMaxSweeps; ++sweep) {
    scaled = false;
    for (int64_t i = balance.first; i <= balance.last; ++i) {
      double of_column = 0, of_row = 0;
      for (int64_t j = balance.first; j <= balance.last; ++j) {
        of_column += a.At(j, i) * a.At(j, i);
        of_row += a.At(i, j) * a.At(i, j);
      }
      if (of_column == 0 || of_row == 0) continue;
      double column = std::sqrt(of_column), row = std::sqrt(of_row), factor = 1;
      const double before = column + row;
      while (2 * column < row && factor < kHuge) {
        factor *= 2;
        column *= 2;
        row /= 2;
      }
      while (column >= 2 * row && factor > kTiny) {
        factor /= 2;
        column /= 2;
        row *= 2;
      }
      const double total = balance.factors[i] * factor;
      if (column + row >= 0.95 * before || !(total > kTiny && total < kHuge)) continue;
      balance.factors[i] = total;
      scaled = true;
      for (int64_t j = balance.first; j < a.size; ++j) a.At(i, j) /= factor;
      for (int64_t j = 0; j <= balance.last; ++j) a.At(j, i) *= factor;
    }
  }
}

/// Applies the reflection I - tau v v^T to `count` adjacent rows of `columns` elements, in place.
template <class Vectors = PlainVectors>
POLYOP_HD void ReflectRows(const double* v, double tau, int64_t count, double* rows, int64_t stride, int64_t columns,
                           double* sums) {
  if (tau == 0) return;
  for (int64_t j = 0; j < columns; ++j) sums[j] = 0;
  for (int64_t i = 0; i < count; ++i) Vectors::SubtractRow(rows + i * stride, -v[i], columns, sums);
  for (int64_t i = 0; i < count; ++i) Vectors::SubtractRow(sums, tau * v[i], columns, rows + i * stride);
}

/// Makes the elements below the first subdiagonal 0 by Householder's reflections. The rows of `vectors`, unless it is
/// null, are reflected as well. `work` has space for 2 * size numbers.
template <class Vectors = PlainVectors>
POLYOP_HD void ReduceToHessenberg(const SquareMatrix& a, const Balance& balance, double* vectors, double* work) {
  const int64_t size = a.size;
  double *const v = work, *const sums = work + size;
  for (int64_t k = balance.first; k + 1 < balance.last; ++k) {
    const int64_t begin = k + 1, count = balance.last - k;
    for (int64_t i = 0; i < count; ++i) v[i] = a.At(begin + i, k);
    const double tau = FindReflection(v, count);
    a.At(begin, k) = v[0];
    for (int64_t i = 1; i < count; ++i) a.At(begin + i, k) = 0;
    v[0] = 1;
    if (tau == 0) continue;
    for (int64_t i = 0; i <= balance.last; ++i) {
      double* const row = a.Row(i) + begin;
      Vectors::SubtractRow(v, tau * Vectors::Dot(row, v, count), count, row);
    }
    ReflectRows<Vectors>(v, tau, count, a.Row(begin) + begin, a.stride, size - begin, sums);
    if (vectors != nullptr) ReflectRows<Vectors>(v, tau, count, vectors + begin * size, size, size, sums);
  }
}

/// Two shifts of a step: equal real ones, or conjugates.
struct Shifts {
  double real, imaginary;
};

/// The eigenvalues of a block, of which real ones become the nearer one to the last element, twice.
POLYOP_HD inline Shifts ShiftsOf(double a, double b, double c, double d) {
  const double scale = std::fabs(a) + std::fabs(b) + std::fabs(c) + std::fabs(d);
  if (scale == 0) return {0, 0};
  a /= scale;
  b /= scale;
  c /= scale;
  d /= scale;
  const double mean = (a + d) / 2, determinant = (a - mean) * (d - mean) - b * c;
  const double root = std::sqrt(std::fabs(determinant));
  if (determinant >= 0) return {mean * scale, root * scale};
  const double more = mean + root, less = mean - root;
  return {(std::fabs(more - d) <= std::fabs(less - d) ? more : less) * scale, 0};
}

/// A rotation (x, y) -> (c x + s y, c y - s x) of two rows.
struct BlockRotation {
  double c, s;
};

/// Returns the rotation that makes a block [a b; c d] with real eigenvalues triangular, and one with conjugate
/// eigenvalues equal on the diagonal, with b and c of opposite signs. Replaces the block.
POLYOP_HD inline BlockRotation StandardizeBlock(double& a, double& b, double& c, double& d) {
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  if (c == 0) return {1, 0};
  if (b == 0) {
    const double first = a;
    a = d;
    d = first;
    b = -c;
    c = 0;
    return {0, 1};
  }
  const bool opposite = (b < 0) != (c < 0);
  if (a == d && opposite) return {1, 0};
  const double difference = a - d, half = difference / 2, larger = std::fmax(std::fabs(b), std::fabs(c));
  const double smaller = std::fmin(std::fabs(b), std::fabs(c)) * (opposite ? -1 : 1);
  const double scale = std::fmax(std::fabs(half), larger);
  const double discriminant = half / scale * half + larger / scale * smaller;
  if (discriminant >= 4 * kEpsilon) {
    const double z = half + std::copysign(std::sqrt(scale) * std::sqrt(discriminant), half);
    a = d + z;
    d -= larger / z * smaller;
    const double length = std::hypot(c, z);
    const BlockRotation rotation = {z / length, c / length};
    b -= c;
    c = 0;
    return rotation;
  }
  const double sum = b + c, length = std::hypot(sum, difference);
  BlockRotation rotation;
  rotation.c = std::sqrt((1 + std::fabs(sum) / length) / 2);
  rotation.s = -(half / (length * rotation.c)) * (sum < 0 ? -1 : 1);
  const double aa = a * rotation.c + b * rotation.s, bb = b * rotation.c - a * rotation.s;
  const double cc = c * rotation.c + d * rotation.s, dd = d * rotation.c - c * rotation.s;
  b = bb * rotation.c + dd * rotation.s;
  c = cc * rotation.c - aa * rotation.s;
  a = d = (aa * rotation.c + cc * rotation.s + dd * rotation.c - bb * rotation.s) / 2;
  if (c == 0) return rotation;
  BlockRotation further;
  if (b == 0) {
    b = -c;
    c = 0;
    further = {0, 1};
  } else if ((b < 0) == (c < 0)) {  // nearly equal real eigenvalues
    const double root_b = std::sqrt(std::fabs(b)), root_c = std::sqrt(std::fabs(c));
    const double distance = std::copysign(root_b * root_c, c), norm = std::sqrt(std::fabs(b + c));
    a += distance;
    d -= distance;
    b -= c;
    c = 0;
    further = {root_b / norm, root_c / norm};
  } else {
    return rotation;
  }
  return {rotation.c * further.c - rotation.s * further.s, rotation.c * further.s + rotation.s * further.c};
}

/// PlainVectors, and the reflection I - tau v v^T of `count` <= 3 adjacent rows of `columns` elements each.
struct PlainReflections : PlainVectors {
  POLYOP_HD static void ReflectFewRows(const double* v, double tau, int64_t count, double* row, int64_t stride,
                                       int64_t columns) {
    double *const second = row + stride, *const third = count == 3 ? second + stride : second;
    const double v1 = v[1], v2 = count == 3 ? v[2] : 0;
    for (int64_t j = 0; j < columns; ++j) {
      const double sum = tau * (row[j] + v1 * second[j] + v2 * third[j]);
      row[j] -= sum;
      second[j] -= sum * v1;
      if (count == 3) third[j] -= sum * v2;
    }
  }
};

/// Applies the reflection of ReflectFewRows to `count` adjacent columns of `rows` rows.
POLYOP_HD inline void ReflectFewColumns(const double* v, double tau, int64_t count, double* from, int64_t stride,
                                        int64_t rows) {
  for (int64_t i = 0; i < rows; ++i) {
    double* const x = from + i * stride;
    double sum = x[0] + v[1] * x[1];
    if (count == 3) sum += v[2] * x[2];
    sum *= tau;
    x[0] -= sum;
    x[1] -= sum * v[1];
    if (count == 3) x[2] -= sum * v[2];
  }
}

/// Returns the first row of the last block without a negligible subdiagonal element that ends at row `last`.
POLYOP_HD inline int64_t StartOfBlock(const SquareMatrix& h, const Balance& balance, int64_t last) {
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  const double small =
      std::numeric_limits<double>::min() * (static_cast<double>(balance.last - balance.first + 1) / kEpsilon);
  int64_t k = last;
  for (; k > balance.first; --k) {
    const double below = h.Magnitude(k, k - 1);
    if (below <= small) break;
    double nearby = h.Magnitude(k - 1, k - 1) + h.Magnitude(k, k);
    if (nearby == 0) {
      if (k - 2 >= balance.first) nearby += h.Magnitude(k - 1, k - 2);
      if (k + 1 <= balance.last) nearby += h.Magnitude(k + 1, k);
    }
    if (below > kEpsilon * nearby) continue;
    const double above = h.Magnitude(k - 1, k), own = h.Magnitude(k, k);
    const double apart = std::fabs(h.At(k - 1, k - 1) - h.At(k, k));
    const double more = std::fmax(below, above), less = std::fmin(below, above);
    const double larger = std::fmax(own, apart), smaller = std::fmin(own, apart), sum = larger + more;
    if (less * (more / sum) <= std::fmax(small, kEpsilon * (smaller * (larger / sum)))) break;
  }
  return k;
}

/// One step of the QR algorithm with two shifts on the rows [start, last]. `left` and `right` are the first and last
/// row and column that are updated; the rows of `vectors`, unless it is null, are reflected as well.
template <class Vectors>
POLYOP_HD void DoubleStep(const SquareMatrix& h, int64_t start, int64_t last, int64_t left, int64_t right,
                          const Shifts& shifts, double* vectors) {
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  const int64_t size = h.size;
  double v[3];
  int64_t m = last - 2;
  // The step may start after the first of two adjacent small subdiagonal elements.
  for (;; --m) {
    const double p = h.At(m, m) - shifts.real, q = h.At(m + 1, m);
    double norm = std::fabs(p) + std::fabs(shifts.imaginary) + std::fabs(q);
    const double scaled = q / norm;
    v[0] = scaled * h.At(m, m + 1) + p * (p / norm) + shifts.imaginary * (shifts.imaginary / norm);
    v[1] = scaled * (h.At(m, m) + h.At(m + 1, m + 1) - 2 * shifts.real);
    v[2] = scaled * h.At(m + 2, m + 1);
    norm = std::fabs(v[0]) + std::fabs(v[1]) + std::fabs(v[2]);
    for (double& x : v) x /= norm;
    if (m == start) break;
    const double nearby = h.Magnitude(m - 1, m - 1) + h.Magnitude(m, m) + h.Magnitude(m + 1, m + 1);
    if (h.Magnitude(m, m - 1) * (std::fabs(v[1]) + std::fabs(v[2])) <= kEpsilon * std::fabs(v[0]) * nearby) break;
  }
  for (int64_t k = m; k < last; ++k) {
    const int64_t count = std::min<int64_t>(3, last - k + 1);
    if (k > m) {
      for (int64_t i = 0; i < count; ++i) v[i] = h.At(k + i, k - 1);
    }
    const double tau = FindReflection(v, count);
    if (k > m) {
      h.At(k, k - 1) = v[0];
      for (int64_t i = 1; i < count; ++i) h.At(k + i, k - 1) = 0;
    } else if (m > start) {
      h.At(k, k - 1) *= 1 - tau;
    }
    if (tau == 0) continue;
    Vectors::ReflectFewRows(v, tau, count, h.Row(k) + k, h.stride, right - k + 1);
    ReflectFewColumns(v, tau, count, h.Row(left) + k, h.stride, std::min(k + 3, last) - left + 1);
    if (vectors != nullptr) Vectors::ReflectFewRows(v, tau, count, vectors + k * size, size, size);
  }
}

/// Computes the Schur form of a Hessenberg matrix and its eigenvalues, and applies the similarity to the rows of
/// `vectors`. If that is null, only the eigenvalues are computed. Returns false if the algorithm does not converge.
template <class Vectors = PlainReflections>
POLYOP_HD bool SchurOfHessenberg(const SquareMatrix& h, const Balance& balance, double* vectors, double* real,
                                 double* imaginary) {
  const int64_t size = h.size, max_steps = 30 * std::max<int64_t>(10, balance.last - balance.first + 1);
  for (int64_t i = 0; i < size; ++i) {
    real[i] = h.At(i, i);
    imaginary[i] = 0;
  }
  for (int64_t last = balance.last; last >= balance.first;) {
    int64_t start = balance.first;
    for (int64_t step = 0;; ++step) {
      start = StartOfBlock(h, balance, last);
      if (start > balance.first) h.At(start, start - 1) = 0;
      if (start >= last - 1) break;
      if (step == max_steps) return false;
      const int64_t left = vectors != nullptr ? 0 : start, right = vectors != nullptr ? size - 1 : last;
      Shifts shifts;
      if ((step + 1) % 20 == 0) {  // other shifts end a cycle
        const double s = h.Magnitude(last, last - 1) + h.Magnitude(last - 1, last - 2), d = 0.75 * s + h.At(last, last);
        shifts = ShiftsOf(d, -0.4375 * s, s, d);
      } else if ((step + 1) % 10 == 0) {
        const double s = h.Magnitude(start + 1, start) + h.Magnitude(start + 2, start + 1);
        const double d = 0.75 * s + h.At(start, start);
        shifts = ShiftsOf(d, -0.4375 * s, s, d);
      } else {
        shifts = ShiftsOf(h.At(last - 1, last - 1), h.At(last - 1, last), h.At(last, last - 1), h.At(last, last));
      }
      DoubleStep<Vectors>(h, start, last, left, right, shifts, vectors);
    }
    if (start == last) {
      real[last] = h.At(last, last);
      imaginary[last] = 0;
    } else {
      double &a = h.At(start, start), &b = h.At(start, last), &c = h.At(last, start), &d = h.At(last, last);
      const BlockRotation rotation = StandardizeBlock(a, b, c, d);
      real[start] = a;
      real[last] = d;
      imaginary[start] = c == 0 ? 0 : std::sqrt(std::fabs(b)) * std::sqrt(std::fabs(c));
      imaginary[last] = c == 0 ? 0 : -imaginary[start];
      if (vectors != nullptr) {
        Vectors::Rotate(h.Row(start) + last + 1, h.Row(last) + last + 1, size - last - 1, rotation.c, -rotation.s);
        for (int64_t i = 0; i < start; ++i) {
          const double x = h.At(i, start), y = h.At(i, last);
          h.At(i, start) = rotation.c * x + rotation.s * y;
          h.At(i, last) = rotation.c * y - rotation.s * x;
        }
        Vectors::Rotate(vectors + start * size, vectors + last * size, size, rotation.c, -rotation.s);
      }
    }
    last = start - 1;
  }
  return true;
}

}  // namespace polyop::linalg
