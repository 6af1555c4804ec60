// SPDX-License-Identifier: Apache-2.0
// Factorizations of one matrix by elimination, and solutions of triangular systems. Matrices are stored by rows, in
// double precision, and are overwritten. CPU and GPU share this code.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/host_device.h"
#include "ops/linalg/vectors.h"

namespace polyop::linalg {

/// Computes A = P L U by Gaussian elimination: `a` receives U and, below its diagonal, L without its unit diagonal.
/// pivots[k] is the row, counted from 1, that was exchanged with row k. Returns the number, from 1, of the first pivot
/// that is exactly 0, whose column is not eliminated, or 0. NaN is a pivot if it is the first candidate. Rows are
/// `stride` elements apart.
POLYOP_HD inline int32_t FactorLu(double* a, int64_t rows, int64_t columns, int64_t stride, int32_t* pivots) {
  int32_t info = 0;
  for (int64_t k = 0; k < std::min(rows, columns); ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < rows; ++i) {
      if (std::fabs(a[i * stride + k]) > std::fabs(a[best * stride + k])) best = i;
    }
    pivots[k] = static_cast<int32_t>(best + 1);
    double* const row = a + k * stride;
    if (best != k) SwapElements(row, a + best * stride, columns);
    if (row[k] == 0) {
      if (info == 0) info = static_cast<int32_t>(k + 1);
      continue;
    }
    for (int64_t i = k + 1; i < rows; ++i) {
      double* const other = a + i * stride;
      other[k] /= row[k];
      SubtractRow(row + k + 1, other[k], columns - k - 1, other + k + 1);
    }
  }
  return info;
}

/// Computes A = L L^T for the symmetric matrix whose lower triangle `a` has, and does not change the upper triangle.
/// Rows are `stride` elements apart. Returns the order, from 1, of the first leading minor that is not positive, where
/// the computation ends, or 0. `inverses` has space for `size` numbers.
POLYOP_HD inline int32_t FactorCholesky(double* a, int64_t size, int64_t stride, double* inverses) {
  for (int64_t i = 0; i < size; ++i) {
    double* const row = a + i * stride;
    for (int64_t j = 0; j <= i; ++j) {
      const double* const other = a + j * stride;
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

/// Sets the elements above the diagonal to 0.
POLYOP_HD inline void ClearUpperTriangle(double* a, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = i + 1; j < size; ++j) a[i * size + j] = 0;
  }
}

/// Which triangular matrix TriangularSolve reads from a stored one.
struct Triangle {
  bool upper, unit, transpose;
};

/// Solves T x = b for `columns` right sides, which are the columns of `b`, and overwrites them. t(i, k) is an element
/// of the lower or upper triangle, whose diagonal counts as 1 if `unit`. Rows of b are `stride` elements apart.
template <class Vectors, class Matrix>
POLYOP_HD void SolveTriangle(const Matrix& t, bool lower, bool unit, int64_t size, double* b, int64_t columns,
                             int64_t stride) {
  for (int64_t n = 0; n < size; ++n) {
    const int64_t k = lower ? n : size - 1 - n;
    double* const row = b + k * stride;
    if (!unit) {
      const double diagonal = t(k, k);
      for (int64_t c = 0; c < columns; ++c) row[c] /= diagonal;
    }
    for (int64_t m = n + 1; m < size; ++m) {
      const int64_t i = lower ? m : size - 1 - m;
      Vectors::SubtractRow(row, t(i, k), columns, b + i * stride);
    }
  }
}

/// Solves T x = b, or T^T x = b, by SolveTriangle. A 0 on the diagonal gives infinities and NaN.
POLYOP_HD inline void TriangularSolve(const Triangle& t, const double* a, int64_t size, double* b, int64_t columns) {
  const auto element = [&](int64_t i, int64_t k) { return t.transpose ? a[k * size + i] : a[i * size + k]; };
  SolveTriangle<PlainVectors>(element, t.upper == t.transpose, t.unit, size, b, columns, columns);
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

/// Exchanges rows and columns `k` and `other` > k of a symmetric matrix, of which `a` has the lower triangle, from
/// column `k` on.
POLYOP_HD inline void ExchangeSymmetric(double* a, int64_t size, int64_t k, int64_t other) {
  const auto swap = [](double& x, double& y) {
    const double value = x;
    x = y;
    y = value;
  };
  for (int64_t i = other + 1; i < size; ++i) swap(a[i * size + k], a[i * size + other]);
  for (int64_t i = k + 1; i < other; ++i) swap(a[i * size + k], a[other * size + i]);
  swap(a[k * size + k], a[other * size + other]);
}

/// Chooses Bunch's and Kaufman's pivot of column k: one row, which may be another one (*row), or rows k and k + 1 if
/// the function returns 2.
POLYOP_HD inline int FindSymmetricPivot(const double* a, int64_t size, int64_t k, int64_t* row) {
  const double kAlpha = 0.6403882032022076;  // (1 + sqrt(17)) / 8
  const double diagonal = std::fabs(a[k * size + k]);
  int64_t largest = k;
  double in_column = 0;
  for (int64_t i = k + 1; i < size; ++i) {
    if (!(std::fabs(a[i * size + k]) > in_column)) continue;  // NaN is not chosen
    in_column = std::fabs(a[i * size + k]);
    largest = i;
  }
  *row = k;
  if (!(diagonal < kAlpha * in_column)) return 1;
  double in_row = 0;
  for (int64_t j = k; j < largest; ++j) in_row = std::fmax(in_row, std::fabs(a[largest * size + j]));
  for (int64_t i = largest + 1; i < size; ++i) in_row = std::fmax(in_row, std::fabs(a[i * size + largest]));
  if (diagonal >= kAlpha * in_column * (in_column / in_row)) return 1;
  *row = largest;
  return std::fabs(a[largest * size + largest]) >= kAlpha * in_row ? 1 : 2;
}

/// Computes A = L D L^T for the symmetric matrix whose lower triangle `a` has, with Bunch's and Kaufman's pivoting. D
/// has blocks of one or two rows. The elements above the diagonal become 0. pivots[k] is the row, counted from 1, that
/// was exchanged with row k; for a block of two rows both are the negative number of the row that was exchanged with
/// its second row. The rows of L are not exchanged. Returns the number, from 1, of the first block that is 0, or 0.
POLYOP_HD inline int32_t FactorLdl(double* a, int64_t size, int32_t* pivots) {
  int32_t info = 0;
  ClearUpperTriangle(a, size);
  for (int64_t k = 0; k < size;) {
    int64_t row = k;
    const int rows = FindSymmetricPivot(a, size, k, &row);
    const int64_t last = k + rows - 1;
    if (row != last) {
      ExchangeSymmetric(a, size, last, row);
      if (rows == 2) SwapElements(a + last * size + k, a + row * size + k, 1);
    }
    pivots[k] = pivots[last] = static_cast<int32_t>(rows == 2 ? -row - 1 : row + 1);
    double *const first = a + k * size + k, *const second = rows == 2 ? a + last * size + last : first;
    if (rows == 1) {
      bool empty = *first == 0;
      for (int64_t i = k + 1; empty && i < size; ++i) empty = a[i * size + k] == 0;
      if (empty && info == 0) info = static_cast<int32_t>(k + 1);
      for (int64_t j = k + 1; !empty && j < size; ++j) {
        const double factor = a[j * size + k] / *first;
        for (int64_t i = j; i < size; ++i) a[i * size + j] -= factor * a[i * size + k];
      }
      for (int64_t i = k + 1; !empty && i < size; ++i) a[i * size + k] /= *first;
    } else {
      const double off = a[last * size + k], d11 = *second / off, d22 = *first / off;
      const double factor = 1 / (d11 * d22 - 1) / off;
      for (int64_t j = k + 2; j < size; ++j) {
        double* const line = a + j * size;
        const double x = factor * (d11 * line[k] - line[last]), y = factor * (d22 * line[last] - line[k]);
        for (int64_t i = j; i < size; ++i) a[i * size + j] -= a[i * size + k] * x + a[i * size + last] * y;
        line[k] = x;
        line[last] = y;
      }
    }
    k += rows;
  }
  return info;
}

/// Solves A x = b with the factors of FactorLdl, for `columns` right sides, and overwrites them. A block that is 0
/// gives infinities and NaN. Pivots that are no rows of the matrix exchange nothing.
POLYOP_HD inline void SolveLdl(const double* a, int64_t size, const int32_t* pivots, double* b, int64_t columns) {
  const auto is_pair = [&](int64_t k) { return pivots[k] < 0; };
  const auto exchange = [&](int64_t k, int32_t pivot) {
    const int64_t other = (pivot < 0 ? -int64_t{pivot} : int64_t{pivot}) - 1;
    if (other >= 0 && other < size && other != k) SwapElements(b + k * columns, b + other * columns, columns);
  };
  for (int64_t k = 0; k < size;) {
    double* const x = b + k * columns;
    const bool pair = is_pair(k) && k + 1 < size;
    exchange(pair ? k + 1 : k, pivots[k]);
    for (int64_t i = k + (pair ? 2 : 1); i < size; ++i) {
      SubtractRow(x, a[i * size + k], columns, b + i * columns);
      if (pair) SubtractRow(x + columns, a[i * size + k + 1], columns, b + i * columns);
    }
    const double first = a[k * size + k];
    for (int64_t c = 0; !pair && c < columns; ++c) x[c] /= first;
    if (pair) {
      const double off = a[(k + 1) * size + k], d22 = first / off, d11 = a[(k + 1) * size + k + 1] / off;
      const double determinant = d22 * d11 - 1;
      for (int64_t c = 0; c < columns; ++c) {
        const double y = x[c] / off, z = x[columns + c] / off;
        x[c] = (d11 * y - z) / determinant;
        x[columns + c] = (d22 * z - y) / determinant;
      }
    }
    k += pair ? 2 : 1;
  }
  for (int64_t k = size - 1; k >= 0;) {
    const bool pair = is_pair(k) && k > 0;
    for (int64_t i = k + 1; i < size; ++i) {
      SubtractRow(b + i * columns, a[i * size + k], columns, b + k * columns);
      if (pair) SubtractRow(b + i * columns, a[i * size + k - 1], columns, b + (k - 1) * columns);
    }
    exchange(k, pivots[k]);
    k -= pair ? 2 : 1;
  }
}

}  // namespace polyop::linalg
