// SPDX-License-Identifier: Apache-2.0
// Householder's reflections by the threads of a block. All threads of the block, or of the warp, must call these
// functions together. Each element of a vector belongs to one thread of a warp, which reads what it wrote. Vectors are
// stored one after the other, in double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/warp_lanes.h"
#include "ops/linalg/householder.h"

namespace polyop::linalg {

/// Calls f(i, warp) for each i in [begin, end), with one warp each, and waits for all of them.
template <class F>
POLYOP_DEVICE void ForEachByWarp(Block& block, int64_t begin, int64_t end, const F& f) {
  const int warps = block.threads() / kWarpLanes;
  block.ForWarps([&](int warp) {
    for (int64_t i = begin + warp; i < end; i += warps) f(i, warp);
  });
}

/// Calls f(i, lane) for each i in [begin, end), with the lane to which element i belongs.
template <class F>
POLYOP_DEVICE void ForElementsOfWarp(int64_t begin, int64_t end, const F& f) {
  ForLanes([&](int lane) {
    for (int64_t i = begin + ((lane - begin) & (kWarpLanes - 1)); i < end; i += kWarpLanes) f(i, lane);
  });
}

/// Calls f() in the first thread of a warp.
template <class F>
POLYOP_DEVICE void InFirstLane(const F& f) {
  ForLanes([&](int lane) {
    if (lane == 0) f();
  });
}

/// Returns the sum of term(i) for i in [begin, end) to every thread of a warp.
template <class Term>
POLYOP_DEVICE double SumInWarp(int64_t begin, int64_t end, const Term& term) {
  Lanes<double> sums;
  ForLanes([&](int lane) { sums[lane] = 0; });
  ForElementsOfWarp(begin, end, [&](int64_t i, int lane) { sums[lane] += term(i); });
  return sums.Reduce([](double a, double b) { return a + b; });
}

/// Returns the largest |x[i]| for i in [begin, end), 0 if there is none, to every thread of a warp. NaN is skipped.
POLYOP_DEVICE inline double LargestInWarp(const double* x, int64_t begin, int64_t end) {
  Lanes<double> largest;
  ForLanes([&](int lane) { largest[lane] = 0; });
  ForElementsOfWarp(begin, end, [&](int64_t i, int lane) {
    const double magnitude = std::fabs(x[i]);
    if (magnitude > largest[lane]) largest[lane] = magnitude;
  });
  return largest.Reduce([](double a, double b) { return b > a ? b : a; });
}

/// Computes what LengthOf does, of elements [begin, end).
POLYOP_DEVICE inline double LengthInWarp(const double* x, int64_t begin, int64_t end) {
  const double squares = SumInWarp(begin, end, [&](int64_t i) { return x[i] * x[i]; });
  if (squares > 0x1p-900 && squares < 0x1p900) return std::sqrt(squares);
  const double largest = LargestInWarp(x, begin, end);
  if (largest == 0) return squares;  // 0 or NaN
  if (std::isinf(largest)) return largest;
  return largest * std::sqrt(SumInWarp(begin, end, [&](int64_t i) { return (x[i] / largest) * (x[i] / largest); }));
}

/// Computes what FindReflection does, for elements [begin, end).
POLYOP_DEVICE inline double FindReflectionInWarp(double* x, int64_t begin, int64_t end) {
  double length = LengthInWarp(x, begin + 1, end);
  if (length == 0) return 0;
  Lanes<double> firsts;
  ForElementsOfWarp(begin, begin + 1, [&](int64_t i, int lane) { firsts[lane] = x[i]; });
  double first = firsts.At(static_cast<int>(begin % kWarpLanes)), total = LengthOfTwo(first, length), scale = 1;
  if (total < kSmallLength) {
    scale = kUpscaling;
    ForElementsOfWarp(begin, end, [&](int64_t i, int) { x[i] *= scale; });
    first *= scale;
    length = LengthInWarp(x, begin + 1, end);
    total = LengthOfTwo(first, length);
  }
  const double beta = -std::copysign(total, first), factor = 1 / (first - beta);
  ForElementsOfWarp(begin, end, [&](int64_t i, int) { x[i] = i == begin ? beta / scale : x[i] * factor; });
  return (beta - first) / beta;
}

/// Applies a reflection to elements [begin, end) of `x`. v[begin] counts as 1.
POLYOP_DEVICE inline void ReflectInWarp(const double* v, double tau, int64_t begin, int64_t end, double* x) {
  if (tau == 0) return;
  const auto of_v = [&](int64_t i) { return i == begin ? 1 : v[i]; };
  const double factor = tau * SumInWarp(begin, end, [&](int64_t i) { return of_v(i) * x[i]; });
  ForElementsOfWarp(begin, end, [&](int64_t i, int) { x[i] -= factor * of_v(i); });
}

/// Computes what FactorQr does.
POLYOP_DEVICE inline void FactorQrInBlock(Block& block, double* columns, int64_t count, int64_t length, double* taus) {
  for (int64_t k = 0; k < (count < length ? count : length); ++k) {
    double* const v = columns + k * length;
    ForEachByWarp(block, 0, 1, [&](int64_t, int) {
      const double tau = FindReflectionInWarp(v, k, length);
      InFirstLane([&] { taus[k] = tau; });
    });
    ForEachByWarp(block, k + 1, count,
                  [&](int64_t j, int) { ReflectInWarp(v, taus[k], k, length, columns + j * length); });
  }
}

/// Computes what ColumnOfQ does.
POLYOP_DEVICE inline void ColumnOfQInWarp(const double* columns, int64_t reflections, int64_t length,
                                          const double* taus, int64_t index, double* to) {
  ForElementsOfWarp(0, length, [&](int64_t i, int) { to[i] = i == index ? 1 : 0; });
  for (int64_t k = reflections; k-- > 0;) ReflectInWarp(columns + k * length, taus[k], k, length, to);
}

}  // namespace polyop::linalg
