// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and eigenvectors of a symmetric matrix, in double precision. CPU and GPU share this code.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/host_device.h"
#include "ops/linalg/householder.h"
#include "ops/linalg/vectors.h"

namespace polyop::linalg {

/// Returns the power of two that scales a magnitude to [0.5, 1); 1 for 0, and NaN if it is not finite.
POLYOP_HD inline double ScaleOfMagnitude(double largest) {
  if (!std::isfinite(largest)) return NAN;
  if (largest == 0) return 1;
  int exponent = 0;
  std::frexp(largest, &exponent);
  return std::ldexp(1.0, std::min(-exponent, 1000));
}

/// Returns the power of two that scales the largest magnitude to [0.5, 1); 1 for zeros, and NaN if an element is not
/// finite.
POLYOP_HD inline double ScaleOf(const double* x, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double magnitude = std::fabs(x[i]);
    if (!(magnitude <= largest)) largest = magnitude;
    if (!std::isfinite(magnitude)) return NAN;
  }
  return ScaleOfMagnitude(largest);
}

/// Returns the sign, 1 or -1, with which the first of the largest elements of a vector is positive. Elements that
/// differ by rounding errors count as equal.
POLYOP_HD inline double SignOf(const double* x, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(x[i]));
  for (int64_t i = 0; i < count; ++i) {
    if (std::fabs(x[i]) >= largest * 0.999) return x[i] < 0 ? -1 : 1;
  }
  return 1;
}

/// Reduces a symmetric matrix to a tridiagonal one by Householder's reflections. `a` is overwritten by their vectors.
/// Row i of `vectors`, if there are any, receives column i of the orthogonal factor. `off` and `taus` have space for
/// `size` numbers each.
template <class Vectors = PlainVectors>
POLYOP_HD void Tridiagonalize(double* a, int64_t size, double* diagonal, double* off, double* taus, double* vectors) {
  for (int64_t k = 0; k + 1 < size; ++k) {
    const int64_t rest = size - k - 1;
    double* const v = a + k * size + k + 1;
    taus[k] = FindReflection(v, rest);
    off[k] = v[0];
    v[0] = 1;
    if (taus[k] == 0) continue;
    double* const w = off + k + 1;  // not yet used
    for (int64_t i = 0; i < rest; ++i) w[i] = taus[k] * Vectors::Dot(a + (k + 1 + i) * size + k + 1, v, rest);
    Vectors::SubtractRow(v, taus[k] / 2 * Vectors::Dot(w, v, rest), rest, w);
    for (int64_t i = 0; i < rest; ++i) {
      Vectors::SubtractTwoRows(w, v[i], v, w[i], rest, a + (k + 1 + i) * size + k + 1);
    }
  }
  for (int64_t i = 0; i < size; ++i) diagonal[i] = a[i * size + i];
  for (int64_t i = 0; vectors != nullptr && i < size; ++i) {
    double* const to = vectors + i * size;
    for (int64_t j = 0; j < size; ++j) to[j] = i == j ? 1 : 0;
    for (int64_t k = size - 1; k-- > 0;) {
      if (taus[k] == 0) continue;
      const double* const v = a + k * size + k + 1;  // whose first element is 1
      double* const x = to + k + 1;
      Vectors::SubtractRow(v, taus[k] * Vectors::Dot(v, x, size - k - 1), size - k - 1, x);
    }
  }
}

/// The QL algorithm with implicit shifts, which makes a symmetric tridiagonal matrix diagonal in sweeps. Elements
/// outside of the diagonal are 0 if they are tiny next to the diagonal's neighbours, or next to all elements: the
/// reduction of a matrix of low rank leaves a block of rounding errors, in which the former alone may not end.
struct TridiagonalSweeps {
  static constexpr int kMaxSweeps = 80;  // for each eigenvalue; usually two or three suffice
  static constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

  double *diagonal = nullptr, *off = nullptr;
  int64_t size = 0;
  double tiny = 0;
  int64_t low = 0, high = 0;  // the first and last row of the next sweep
  int sweeps = 0;             // of row `low`, with the next one

  TridiagonalSweeps() = default;
  POLYOP_HD TridiagonalSweeps(double* on_diagonal, double* off_diagonal, int64_t rows)
      : diagonal(on_diagonal), off(off_diagonal), size(rows) {
    for (int64_t i = 0; i < size; ++i) tiny = std::max(tiny, std::max(std::fabs(diagonal[i]), std::fabs(off[i])));
    tiny *= kEpsilon / 256;
  }

  /// Finds the rows of the next sweep. Returns false if the matrix is diagonal.
  POLYOP_HD bool Next() {
    for (; low < size; ++low, sweeps = 0) {
      high = low;
      while (high + 1 < size && !IsZero(high)) ++high;
      if (high == low) continue;
      ++sweeps;
      return true;
    }
    return false;
  }
  POLYOP_HD bool failed() const { return sweeps > kMaxSweeps; }

  /// Calls rotate(i, c, s) for each Rotate of rows i and i + 1 of the vectors, from the last one on.
  template <class RotateRows>
  POLYOP_HD void Sweep(const RotateRows& rotate) const {
    // Wilkinson's shift: the eigenvalue of the first 2 x 2 block that is nearer to the first element.
    const double g = (diagonal[low + 1] - diagonal[low]) / (2 * off[low]);
    double bulge = diagonal[high] - diagonal[low] + off[low] / (g + std::copysign(std::hypot(g, 1.0), g));
    double sine = 1, cosine = 1, removed = 0;
    for (int64_t i = high; i-- > low;) {
      const double f = sine * off[i], b = cosine * off[i], r = std::sqrt(f * f + bulge * bulge);
      off[i + 1] = r;
      if (r == 0) {
        diagonal[i + 1] -= removed;
        off[high] = 0;
        return;
      }
      sine = f / r;
      cosine = bulge / r;
      const double shifted = diagonal[i + 1] - removed, t = (diagonal[i] - shifted) * sine + 2 * cosine * b;
      removed = sine * t;
      diagonal[i + 1] = shifted + removed;
      bulge = cosine * t - b;
      rotate(i, cosine, sine);
    }
    off[high] = 0;
    diagonal[low] -= removed;
    off[low] = bulge;
  }

 private:
  POLYOP_HD bool IsZero(int64_t i) const {
    const double magnitude = std::fabs(off[i]);
    return magnitude <= tiny || magnitude <= kEpsilon * (std::fabs(diagonal[i]) + std::fabs(diagonal[i + 1]));
  }
};

/// Diagonalizes a symmetric tridiagonal matrix, and calls rotate(i, c, s) for each Rotate of rows i and i + 1 of the
/// vectors. Returns false if the algorithm does not converge.
template <class RotateRows>
POLYOP_HD bool DiagonalizeTridiagonal(double* diagonal, double* off, int64_t size, const RotateRows& rotate) {
  TridiagonalSweeps sweeps(diagonal, off, size);
  while (sweeps.Next()) {
    if (sweeps.failed()) return false;
    sweeps.Sweep(rotate);
  }
  return true;
}

/// Computes the eigenvalues only of a symmetric tridiagonal matrix, in any order, by the QL algorithm without square
/// roots (Pal, Walker and Kahan). `off` is overwritten, and has an element for each row. Requires: the largest element
/// is neither huge nor tiny. Returns false if it does not converge.
POLYOP_HD inline bool EigenvaluesOfTridiagonal(double* diagonal, double* off, int64_t size) {
  constexpr int kMaxSteps = 80;
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  double largest = 0;
  for (int64_t i = 0; i < size; ++i) {
    largest = std::max(largest, std::max(std::fabs(diagonal[i]), std::fabs(off[i])));
    off[i] *= off[i];
  }
  const double tiny = (kEpsilon / 256 * largest) * (kEpsilon / 256 * largest);
  const auto is_zero = [&](int64_t i) {
    const double nearby = kEpsilon * (std::fabs(diagonal[i]) + std::fabs(diagonal[i + 1]));
    return off[i] <= tiny || off[i] <= nearby * nearby;
  };
  for (int64_t low = 0; low < size; ++low) {
    for (int step = 0;; ++step) {
      int64_t high = low;
      while (high + 1 < size && !is_zero(high)) ++high;
      if (high == low) break;
      if (step == kMaxSteps) return false;
      const double link = std::sqrt(off[low]), g = (diagonal[low + 1] - diagonal[low]) / (2 * link);
      const double shift = diagonal[low] - link / (g + std::copysign(std::sqrt(g * g + 1), g));
      double cosine = 1, sine = 0, gamma = diagonal[high] - shift, p = gamma * gamma;  // squares of cosine and sine
      for (int64_t i = high; i-- > low;) {
        const double square = off[i], sum = p + square, before = cosine, last = gamma, own = diagonal[i];
        if (i + 1 < high) off[i + 1] = sine * sum;
        cosine = p / sum;
        sine = square / sum;
        gamma = cosine * (own - shift) - sine * last;
        diagonal[i + 1] = last + (own - gamma);
        p = p > 0x1p-900 ? gamma * gamma * (sum / p) : before * square;  // the limit for p = 0
      }
      off[low] = sine * p;
      diagonal[low] = shift + gamma;
    }
  }
  return true;
}

/// Sorts eigenvalues in ascending order, and unless `vectors` is null its rows.
POLYOP_HD inline void SortEigenvalues(double* values, int64_t size, double* vectors) {
  for (int64_t i = 0; i < size; ++i) {
    int64_t least = i;
    for (int64_t j = i + 1; j < size; ++j) {
      if (values[j] < values[least]) least = j;
    }
    if (least != i) SwapElements(values + i, values + least, 1);
    if (least != i && vectors != nullptr) SwapElements(vectors + i * size, vectors + least * size, size);
  }
}

/// Computes the eigenvalues of a finite symmetric matrix in ascending order, and unless `vectors` is null its
/// eigenvectors, as rows. `a` is overwritten; `work` has space for 2 * size numbers. Returns false if the algorithm
/// does not converge.
template <class Vectors = PlainVectors>
POLYOP_HD bool SymmetricEigen(double* a, int64_t size, double* values, double* vectors, double* work) {
  if (size == 0) return true;
  const double scale = ScaleOf(a, size * size);
  for (int64_t i = 0; i < size * size; ++i) a[i] *= scale;
  double* const off = work;
  Tridiagonalize<Vectors>(a, size, values, off, work + size, vectors);
  off[size - 1] = 0;
  const auto rotate = [&](int64_t i, double c, double s) {
    Vectors::Rotate(vectors + i * size, vectors + (i + 1) * size, size, c, s);
  };
  const bool converged = vectors == nullptr ? EigenvaluesOfTridiagonal(values, off, size)
                                            : DiagonalizeTridiagonal(values, off, size, rotate);
  if (!converged) return false;
  SortEigenvalues(values, size, vectors);
  for (int64_t i = 0; i < size; ++i) values[i] /= scale;
  return true;
}

}  // namespace polyop::linalg
