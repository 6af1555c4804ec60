// Factorizations of one matrix by elimination, and solutions of triangular systems. Matrices are stored by rows, in
// double precision, and are overwritten. CPU and GPU share this code.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/host_device.h"
#include "families/linalg/vectors.h"

namespace polyop::linalg {

/// Computes A = P L U by Gaussian elimination: `a` receives U and, below its diagonal, L without its unit diagonal.
/// pivots[k] is the row, counted from 1, that was exchanged with row k. Returns the number, from 1, of the first pivot
/// that is exactly 0, whose column is not eliminated, or 0. NaN is a pivot if it is the first candidate.
POLYOP_HD inline int32_t FactorLu(double* a, int64_t rows, int64_t columns, int32_t* pivots) {
  int32_t info = 0;
  for (int64_t k = 0; k < std::min(rows, columns); ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < rows; ++i) {
      if (std::fabs(a[i * columns + k]) > std::fabs(a[best * columns + k])) best = i;
    }
    pivots[k] = static_cast<int32_t>(best + 1);
    double* const row = a + k * columns;
    if (best != k) SwapElements(row, a + best * columns, columns);
    if (row[k] == 0) {
      if (info == 0) info = static_cast<int32_t>(k + 1);
      continue;
    }
    for (int64_t i = k + 1; i < rows; ++i) {
      double* const other = a + i * columns;
      other[k] /= row[k];
      SubtractRow(row + k + 1, other[k], columns - k - 1, other + k + 1);
    }
  }
  return info;
}

/// Computes A = L L^T for the symmetric matrix whose lower triangle `a` has. The elements above the diagonal become 0.
/// Returns the order, from 1, of the first leading minor that is not positive, where the computation ends, or 0.
/// `inverses` has space for `size` numbers.
POLYOP_HD inline int32_t FactorCholesky(double* a, int64_t size, double* inverses) {
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = i + 1; j < size; ++j) a[i * size + j] = 0;
  }
  for (int64_t i = 0; i < size; ++i) {
    double* const row = a + i * size;
    for (int64_t j = 0; j <= i; ++j) {
      const double* const other = a + j * size;
      const double sum = row[j] - Dot(row, other, j);
      if (j < i) {
        row[j] = sum * inverses[j];
      } else if (sum > 0) {
        row[j] = std::sqrt(sum);
        inverses[j] = 1 / row[j];
      } else {
        return static_cast<int32_t>(i + 1);
      }
    }
  }
  return 0;
}

/// Which triangular matrix TriangularSolve reads from a stored one.
struct Triangle {
  bool upper, unit, transpose;
};

/// Solves T x = b, or T^T x = b, for `columns` right sides, which are the columns of `b`, and overwrites them. A 0 on
/// the diagonal gives infinities and NaN.
POLYOP_HD inline void TriangularSolve(const Triangle& t, const double* a, int64_t size, double* b, int64_t columns) {
  const bool forward = t.upper == t.transpose;
  for (int64_t n = 0; n < size; ++n) {
    const int64_t k = forward ? n : size - 1 - n;
    double* const row = b + k * columns;
    if (!t.unit) {
      const double diagonal = a[k * size + k];
      for (int64_t c = 0; c < columns; ++c) row[c] /= diagonal;
    }
    for (int64_t m = n + 1; m < size; ++m) {
      const int64_t i = forward ? m : size - 1 - m;
      SubtractRow(row, t.transpose ? a[k * size + i] : a[i * size + k], columns, b + i * columns);
    }
  }
}

/// Exchanges rows of `b` as FactorLu exchanged them, or in reverse. Pivots that are no rows of the matrix exchange
/// nothing.
POLYOP_HD inline void ExchangeRows(const int32_t* pivots, int64_t count, bool reverse, double* b, int64_t rows,
                                   int64_t columns) {
  for (int64_t n = 0; n < count; ++n) {
    const int64_t k = reverse ? count - 1 - n : n, other = int64_t{pivots[k]} - 1;
    if (other >= 0 && other < rows && other != k) SwapElements(b + k * columns, b + other * columns, columns);
  }
}

}  // namespace polyop::linalg
