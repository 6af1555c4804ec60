// SPDX-License-Identifier: Apache-2.0
// Householder reflections of vectors that are stored one after the other, in double precision. CPU and GPU share this
// code.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/host_device.h"
#include "ops/linalg/vectors.h"

namespace polyop::linalg {

/// std::hypot, which is slow, where squares neither overflow nor underflow.
POLYOP_HD inline double LengthOfTwo(double x, double y) {
  const double squares = x * x + y * y;
  return squares > 0x1p-900 && squares < 0x1p900 ? std::sqrt(squares) : std::hypot(x, y);
}

/// Shorter vectors are multiplied by kUpscaling first: the results of denormal numbers would be inexact.
inline constexpr double kSmallLength = 0x1p-900, kUpscaling = 0x1p200;

/// Finds the reflection H = I - tau v v^T, v[0] = 1, with H x = (beta, 0, …, 0)^T. x[0] receives beta, whose sign is
/// opposite to that of x[0], and the other elements those of v. Returns tau; 0, for H = I, if they are 0 already.
POLYOP_HD inline double FindReflection(double* x, int64_t count) {
  double length = count > 1 ? LengthOf(x + 1, count - 1) : 0;
  if (length == 0) return 0;
  double total = LengthOfTwo(x[0], length), scale = 1;
  if (total < kSmallLength) {
    scale = kUpscaling;
    for (int64_t i = 0; i < count; ++i) x[i] *= scale;
    length = LengthOf(x + 1, count - 1);
    total = LengthOfTwo(x[0], length);
  }
  const double first = x[0], beta = -std::copysign(total, first);
  const double factor = 1 / (first - beta);
  for (int64_t i = 1; i < count; ++i) x[i] *= factor;
  x[0] = beta / scale;
  return (beta - first) / beta;
}

/// Applies the reflection of FindReflection to `x`. The first element of `v` is not read.
POLYOP_HD inline void Reflect(const double* v, double tau, int64_t count, double* x) {
  if (tau == 0) return;
  const double factor = tau * (x[0] + Dot(v + 1, x + 1, count - 1));
  x[0] -= factor;
  for (int64_t i = 1; i < count; ++i) x[i] -= factor * v[i];
}

/// Computes the factorization Q R of a matrix whose `count` columns of `length` elements are stored one after the
/// other: column j receives column j of R, and below its diagonal the vector of reflection j.
POLYOP_HD inline void FactorQr(double* columns, int64_t count, int64_t length, double* taus) {
  for (int64_t k = 0; k < std::min(count, length); ++k) {
    double* const v = columns + k * length + k;
    taus[k] = FindReflection(v, length - k);
    for (int64_t j = k + 1; j < count; ++j) Reflect(v, taus[k], length - k, columns + j * length + k);
  }
}

/// Computes column `index` of the matrix Q whose `reflections` FactorQr found.
POLYOP_HD inline void ColumnOfQ(const double* columns, int64_t reflections, int64_t length, const double* taus,
                                int64_t index, double* to) {
  for (int64_t i = 0; i < length; ++i) to[i] = i == index ? 1 : 0;
  for (int64_t k = reflections; k-- > 0;) Reflect(columns + k * length + k, taus[k], length - k, to + k);
}

}  // namespace polyop::linalg
