// SPDX-License-Identifier: Apache-2.0
// Operations on vectors in double precision, which CPU and GPU share.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace polyop::linalg {

POLYOP_HD inline void SwapElements(double* a, double* b, int64_t count, int64_t step = 1) {
  for (int64_t i = 0; i < count * step; i += step) {
    const double value = a[i];
    a[i] = b[i];
    b[i] = value;
  }
}

/// Computes to[i] -= factor * from[i].
POLYOP_HD inline void SubtractRow(const double* from, double factor, int64_t count, double* to) {
  for (int64_t i = 0; i < count; ++i) to[i] -= factor * from[i];
}

/// Returns the sum of a[i] * b[i], in four parts that fill vectors.
POLYOP_HD inline double Dot(const double* a, const double* b, int64_t count) {
  double sums[4] = {0, 0, 0, 0};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (int k = 0; k < 4; ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

/// Returns the Euclidean length of a vector without overflow or underflow of the squares. Like std::hypot's, it is
/// infinite if an element is, also next to NaN.
POLYOP_HD inline double LengthOf(const double* x, int64_t count) {
  const double squares = Dot(x, x, count);
  if (squares > 0x1p-900 && squares < 0x1p900) return std::sqrt(squares);
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double magnitude = std::fabs(x[i]);
    if (magnitude > largest) largest = magnitude;
  }
  if (largest == 0) return squares;  // 0 or NaN
  if (std::isinf(largest)) return largest;
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += (x[i] / largest) * (x[i] / largest);
  return largest * std::sqrt(sum);
}

/// Rotates two vectors, which do not overlap: (a, b) becomes (c a - s b, s a + c b).
POLYOP_HD inline void Rotate(double* __restrict a, double* __restrict b, int64_t count, double c, double s) {
  for (int64_t i = 0; i < count; ++i) {
    const double x = a[i], y = b[i];
    a[i] = c * x - s * y;
    b[i] = s * x + c * y;
  }
}

/// The operations on vectors, of which CPU kernels have versions for each instruction set.
struct PlainVectors {
  POLYOP_HD static double Dot(const double* a, const double* b, int64_t count) { return linalg::Dot(a, b, count); }
  POLYOP_HD static void SubtractRow(const double* from, double factor, int64_t count, double* to) {
    linalg::SubtractRow(from, factor, count, to);
  }
  /// Computes to[i] -= x * a[i] + y * b[i].
  POLYOP_HD static void SubtractTwoRows(const double* a, double x, const double* b, double y, int64_t count,
                                        double* to) {
    for (int64_t i = 0; i < count; ++i) to[i] -= x * a[i] + y * b[i];
  }
  POLYOP_HD static void Rotate(double* a, double* b, int64_t count, double c, double s) {
    linalg::Rotate(a, b, count, c, s);
  }
};

}  // namespace polyop::linalg
