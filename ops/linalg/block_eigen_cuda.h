// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and eigenvectors of a symmetric matrix by the threads of a block, in double precision. All threads of the
// block must call these functions together.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/warp_lanes.h"
#include "ops/linalg/block_elimination_cuda.h"
#include "ops/linalg/block_householder_cuda.h"
#include "ops/linalg/symmetric_eigen.h"

namespace polyop::linalg {

/// Shared memory of SymmetricEigenInBlock.
struct BlockEigenShared {
  double* of_warps;  // a number of each warp
  int64_t* rows;     // of a sweep: the first and the last one
  static constexpr int64_t kBytes = kMaxBlockWarps * 8 + 16;

  POLYOP_DEVICE explicit BlockEigenShared(Block& block)
      : of_warps(block.Shared<double>(kMaxBlockWarps)), rows(block.Shared<int64_t>(2)) {}
};

/// Computes what ScaleOf does.
POLYOP_DEVICE inline double ScaleInBlock(Block& block, const double* x, int64_t count, const BlockEigenShared& shared) {
  const auto larger = [](double a, double b) { return b > a ? b : a; };
  block.ForWarps([&](int warp) {
    Lanes<double> largest;
    ForLanes([&](int lane) {
      largest[lane] = 0;
      for (int64_t i = warp * kWarpLanes + lane; i < count; i += block.threads()) {
        const double magnitude = std::fabs(x[i]);
        largest[lane] = larger(largest[lane], magnitude != magnitude ? INFINITY : magnitude);
      }
    });
    const double of_warp = largest.Reduce(larger);
    InFirstLane([&] { shared.of_warps[warp] = of_warp; });
  });
  double largest = 0;
  for (int warp = 0; warp < block.threads() / kWarpLanes; ++warp) largest = larger(largest, shared.of_warps[warp]);
  return ScaleOfMagnitude(largest);
}

/// Computes what SignOf does. Elements are those of ForElementsOfWarp.
POLYOP_DEVICE inline double SignInWarp(const double* x, int64_t count) {
  const double largest = LargestInWarp(x, 0, count);
  Lanes<int64_t> firsts;
  ForLanes([&](int lane) { firsts[lane] = count; });
  ForElementsOfWarp(0, count, [&](int64_t i, int lane) {
    if (i < firsts[lane] && std::fabs(x[i]) >= largest * 0.999) firsts[lane] = i;
  });
  const int64_t first = firsts.Reduce([](int64_t a, int64_t b) { return a < b ? a : b; });
  Lanes<double> signs;
  ForElementsOfWarp(first, first < count ? first + 1 : first,
                    [&](int64_t i, int lane) { signs[lane] = x[i] < 0 ? -1 : 1; });
  return first < count ? signs.At(static_cast<int>(first % kWarpLanes)) : 1;
}

/// Sets order[k] to the index of the value that has k values before it: those for which before(value, other) holds, and
/// equal ones of lower indices. The values are not NaN.
template <class Before>
POLYOP_DEVICE void OrderInBlock(Block& block, const double* values, int64_t count, const Before& before,
                                double* order) {
  block.ForThreads([&](int t) {
    for (int64_t i = t; i < count; i += block.threads()) {
      int64_t rank = 0;
      for (int64_t j = 0; j < count; ++j) {
        if (before(values[j], values[i]) || (j < i && !before(values[i], values[j]))) ++rank;
      }
      order[rank] = static_cast<double>(i);
    }
  });
}

/// Computes what Tridiagonalize does.
POLYOP_DEVICE inline void TridiagonalizeInBlock(Block& block, double* a, int64_t size, double* diagonal, double* off,
                                                double* taus, double* vectors) {
  for (int64_t k = 0; k + 1 < size; ++k) {
    double* const v = a + k * size;
    ForEachByWarp(block, 0, 1, [&](int64_t, int) {
      const double tau = FindReflectionInWarp(v, k + 1, size);
      ForElementsOfWarp(k + 1, k + 2, [&](int64_t i, int) {
        taus[k] = tau;
        off[k] = v[i];
        v[i] = 1;
      });
    });
    const double tau = taus[k];
    if (tau == 0) continue;
    double* const w = off;  // whose elements after k are not yet used
    ForEachByWarp(block, k + 1, size, [&](int64_t j, int) {
      const double sum = SumInWarp(k + 1, size, [&](int64_t i) { return a[j * size + i] * v[i]; });
      InFirstLane([&] { w[j] = tau * sum; });
    });
    ForEachByWarp(block, 0, 1, [&](int64_t, int) {
      const double factor = tau / 2 * SumInWarp(k + 1, size, [&](int64_t i) { return w[i] * v[i]; });
      ForElementsOfWarp(k + 1, size, [&](int64_t i, int) { w[i] -= factor * v[i]; });
    });
    ForElements(block, k + 1, size, k + 1, size,
                [&](int64_t i, int64_t j) { a[i * size + j] -= v[i] * w[j] + w[i] * v[j]; });
  }
  block.ForThreads([&](int t) {
    for (int64_t i = t; i < size; i += block.threads()) diagonal[i] = a[i * (size + 1)];
  });
  if (vectors == nullptr) return;
  ForEachByWarp(block, 0, size, [&](int64_t i, int) {
    double* const to = vectors + i * size;
    ForElementsOfWarp(0, size, [&](int64_t j, int) { to[j] = i == j ? 1 : 0; });
    for (int64_t k = size - 1; k-- > 0;) ReflectInWarp(a + k * size, taus[k], k + 1, size, to);
  });
}

/// Computes what DiagonalizeTridiagonal does, with the rotations of `vectors`. A thread computes the rotations of a
/// sweep, then all threads rotate columns of `vectors`. `cosines` and `sines` have space for `size` numbers.
POLYOP_DEVICE inline bool DiagonalizeInBlock(Block& block, double* diagonal, double* off, int64_t size, double* vectors,
                                             double* cosines, double* sines, const BlockEigenShared& shared) {
  Block::Local<TridiagonalSweeps> sweeps(block);
  block.ForThreads([&](int t) {
    if (t == 0) sweeps[t] = TridiagonalSweeps(diagonal, off, size);
  });
  for (;;) {
    block.ForThreads([&](int t) {
      if (t != 0) return;
      const bool found = sweeps[t].Next(), failed = sweeps[t].failed();
      const int64_t low = sweeps[t].low, high = sweeps[t].high;
      shared.rows[0] = found ? low : 0;
      shared.rows[1] = !found ? 0 : failed ? -1 : high;
      if (!found || failed) return;
      for (int64_t i = low; i < high; ++i) {
        cosines[i] = 1;
        sines[i] = 0;
      }
      sweeps[t].Sweep([&](int64_t i, double c, double s) {
        cosines[i] = c;
        sines[i] = s;
      });
    });
    const int64_t low = shared.rows[0], high = shared.rows[1];
    if (high <= low) return high >= 0;
    block.ForThreads([&](int t) {
      for (int64_t j = t; j < size; j += block.threads()) {
        double carried = vectors[high * size + j];
        for (int64_t i = high; i-- > low;) {
          const double c = cosines[i], s = sines[i], x = vectors[i * size + j];
          vectors[(i + 1) * size + j] = s * x + c * carried;
          carried = c * x - s * carried;
        }
        vectors[low * size + j] = carried;
      }
    });
  }
}

/// The number of doubles that `work` of SymmetricEigenInBlock must have space for.
POLYOP_HD constexpr int64_t BlockEigenWork(int64_t size) { return 4 * size; }

/// Computes what EigenvaluesOfTridiagonal does, in one thread.
POLYOP_DEVICE inline bool EigenvaluesInBlock(Block& block, double* diagonal, double* off, int64_t size,
                                             const BlockEigenShared& shared) {
  block.ForThreads([&](int t) {
    if (t == 0) shared.rows[0] = EigenvaluesOfTridiagonal(diagonal, off, size) ? 1 : 0;
  });
  return shared.rows[0] != 0;
}

/// Computes the eigenvalues of a finite symmetric matrix in ascending order, and unless `vectors` is null its
/// eigenvectors, as rows: that of values[k] is row order[k]. `a` is overwritten; `scale` is its ScaleOf; `work` has
/// space for BlockEigenWork(size) numbers. Returns false if the algorithm does not converge. Requires: size > 0.
POLYOP_DEVICE inline bool SymmetricEigenInBlock(Block& block, double* a, double scale, int64_t size, double* values,
                                                double* order, double* vectors, double* work,
                                                const BlockEigenShared& shared) {
  double *const diagonal = work, *const off = diagonal + size, *const cosines = off + size,
                *const sines = cosines + size;
  ForElements(block, 0, size, 0, size, [&](int64_t i, int64_t j) { a[i * size + j] *= scale; });
  TridiagonalizeInBlock(block, a, size, diagonal, off, cosines, vectors);
  block.ForThreads([&](int t) {
    if (t == 0) off[size - 1] = 0;
  });
  const bool converged = vectors == nullptr
                             ? EigenvaluesInBlock(block, diagonal, off, size, shared)
                             : DiagonalizeInBlock(block, diagonal, off, size, vectors, cosines, sines, shared);
  if (!converged) return false;
  OrderInBlock(block, diagonal, size, [](double x, double y) { return x < y; }, order);
  block.ForThreads([&](int t) {
    for (int64_t k = t; k < size; k += block.threads()) values[k] = diagonal[static_cast<int64_t>(order[k])] / scale;
  });
  return true;
}

}  // namespace polyop::linalg
