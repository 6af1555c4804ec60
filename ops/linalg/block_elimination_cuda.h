// SPDX-License-Identifier: Apache-2.0
// Elimination of one matrix by a thread block. Every element is computed by the same operations in the same order as in
// elimination.h, so the results are equal bit by bit. All threads of the block must call these functions together.
// Matrices are stored by rows, in double precision, in shared or global memory.
#pragma once

#include <algorithm>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/warp_lanes.h"
#include "ops/linalg/vectors.h"

namespace polyop::linalg {

/// Rows and columns of the largest matrix that a thread computes alone. A larger one is computed by a block.
inline constexpr int64_t kMaxSizeOfThread = 8;
/// Threads of the largest block.
inline constexpr int kMaxBlockThreads = 512;
inline constexpr int kMaxBlockWarps = kMaxBlockThreads / kWarpLanes;
/// Shared memory that a matrix may use; the rest is for variables of a block.
inline constexpr int64_t kMaxSharedElements = (kMaxSharedBytes - 256) / 8;

/// The most matrices that threads, or blocks, compute at a time in scratch memory: enough to occupy a GPU. Others
/// follow on the stream, in the same memory.
inline constexpr int64_t kMaxThreadsAtOnce = int64_t{1} << 16, kMaxBlocksAtOnce = 1024;

/// Returns how many threads work on a matrix of that many elements.
constexpr int BlockThreads(int64_t elements) {
  return static_cast<int>(std::clamp<int64_t>(BlocksFor(elements, 512) * kWarpLanes, kWarpLanes, kMaxBlockThreads));
}

/// Decomposes each matrix n by matrices.Decompose(n, work), with a thread and separate scratch memory for each
/// of those that are computed at a time.
template <class Matrices>
Status DecomposeInThreads(const CudaContext& cuda, const Matrices& matrices) {
  const int64_t size = matrices.WorkSize(), at_once = std::min(matrices.count, kMaxThreadsAtOnce);
  double* const work = cuda.Allocate<double>(at_once * size);
  for (int64_t first = 0; first < matrices.count; first += at_once) {
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, std::min(at_once, matrices.count - first),
                                   [=] POLYOP_DEVICE(int64_t i) { matrices.Decompose(first + i, work + i * size); }));
  }
  return Status::Ok();
}

/// Returns the distance of rows in shared memory that have `columns` elements: an odd one, so that the elements of a
/// column are in different banks.
constexpr int64_t SharedStride(int64_t columns) { return columns | 1; }

/// Calls f(i, j) for the elements of rows [first_row, rows) and columns [first_column, columns), one row per warp at a
/// time.
template <class F>
POLYOP_DEVICE void ForElements(Block& block, int64_t first_row, int64_t rows, int64_t first_column, int64_t columns,
                               const F& f) {
  const int warps = block.threads() / kWarpLanes;
  block.ForThreads([&](int t) {
    for (int64_t i = first_row + t / kWarpLanes; i < rows; i += warps) {
      for (int64_t j = first_column + t % kWarpLanes; j < columns; j += kWarpLanes) f(i, j);
    }
  });
}

struct PivotCandidate {
  double magnitude;
  int64_t row;
};

/// Returns the larger candidate; ties go to the lower row.
POLYOP_HD inline PivotCandidate LargerPivot(const PivotCandidate& a, const PivotCandidate& b) {
  return b.magnitude > a.magnitude || (b.magnitude == a.magnitude && b.row < a.row) ? b : a;
}

/// Sets *pivot_row to the row of the largest magnitude of column k in rows [k, rows). NaN is chosen only in row k.
/// `pivot_row` is in shared memory.
POLYOP_DEVICE inline void FindPivot(Block& block, const double* a, int64_t rows, int64_t stride, int64_t k,
                                    int64_t* pivot_row) {
  block.ForWarps([&](int warp) {
    if (warp != 0) return;
    Lanes<PivotCandidate> best;
    ForLanes([&](int lane) {
      best[lane] = {-1, INT64_MAX};
      for (int64_t i = k + lane; i < rows; i += kWarpLanes) {
        const double magnitude = std::fabs(a[i * stride + k]);
        if (magnitude > best[lane].magnitude) best[lane] = {magnitude, i};
        if (i == k && magnitude != magnitude) best[lane] = {INFINITY, k};
      }
    });
    const PivotCandidate pivot = best.Reduce([](const auto& x, const auto& y) { return LargerPivot(x, y); });
    ForLanes([&](int lane) {
      if (lane == 0) *pivot_row = pivot.row;
    });
  });
}

/// Computes what FactorLu does. `pivot_row` is in shared memory.
POLYOP_DEVICE inline int32_t FactorLuInBlock(Block& block, double* a, int64_t rows, int64_t columns, int64_t stride,
                                             int32_t* pivots, int64_t* pivot_row) {
  int32_t info = 0;
  const int threads = block.threads();
  for (int64_t k = 0; k < (rows < columns ? rows : columns); ++k) {
    FindPivot(block, a, rows, stride, k, pivot_row);
    const int64_t best = *pivot_row;
    block.ForThreads([&](int t) {
      if (t == 0) pivots[k] = static_cast<int32_t>(best + 1);
      for (int64_t j = t; j < columns && best != k; j += threads) {
        const double value = a[k * stride + j];
        a[k * stride + j] = a[best * stride + j];
        a[best * stride + j] = value;
      }
    });
    const double pivot = a[k * stride + k];
    if (pivot == 0) {
      if (info == 0) info = static_cast<int32_t>(k + 1);
      continue;
    }
    block.ForThreads([&](int t) {
      for (int64_t i = k + 1 + t; i < rows; i += threads) a[i * stride + k] /= pivot;
    });
    ForElements(block, k + 1, rows, k + 1, columns,
                [&](int64_t i, int64_t j) { a[i * stride + j] -= a[i * stride + k] * a[k * stride + j]; });
  }
  return info;
}

/// Computes what FactorCholesky does, but if the result is not 0, the rows that follow row `result` - 1 are undefined.
/// `inverse` is in shared memory.
POLYOP_DEVICE inline int32_t FactorCholeskyInBlock(Block& block, double* a, int64_t size, int64_t stride,
                                                   double* inverse) {
  const int threads = block.threads();
  for (int64_t j = 0; j < size; ++j) {
    const double* const row = a + j * stride;
    block.ForThreads([&](int t) {
      for (int64_t i = j + t; i < size; i += threads) {
        double* const other = a + i * stride;
        const double sum = other[j] - Dot(other, row, j);
        if (i > j) {
          other[j] = sum;
        } else if (sum > 0) {
          other[j] = std::sqrt(sum);
          *inverse = 1 / other[j];
        } else {
          *inverse = -1;
        }
      }
    });
    const double factor = *inverse;
    if (factor < 0) return static_cast<int32_t>(j + 1);
    block.ForThreads([&](int t) {
      for (int64_t i = j + 1 + t; i < size; i += threads) a[i * stride + j] *= factor;
    });
  }
  return 0;
}

/// Computes what SolveTriangle does.
template <class Matrix>
POLYOP_DEVICE void SolveTriangleInBlock(Block& block, const Matrix& matrix, bool lower, bool unit, int64_t size,
                                        double* b, int64_t columns) {
  const int threads = block.threads();
  for (int64_t n = 0; n < size; ++n) {
    const int64_t k = lower ? n : size - 1 - n;
    double* const row = b + k * columns;
    if (!unit) {
      block.ForThreads([&](int t) {
        for (int64_t c = t; c < columns; c += threads) row[c] /= matrix(k, k);
      });
    }
    const int64_t left = size - n - 1;
    block.ForThreads([&](int t) {
      for (int64_t e = t; e < left * columns; e += threads) {
        const int64_t m = columns == 1 ? e : e / columns, c = e - m * columns;
        const int64_t i = lower ? n + 1 + m : size - 2 - n - m;
        b[i * columns + c] -= matrix(i, k) * row[c];
      }
    });
  }
}

/// Computes what ExchangeRows does.
POLYOP_DEVICE inline void ExchangeRowsInBlock(Block& block, const int32_t* pivots, int64_t count, bool reverse,
                                              double* b, int64_t rows, int64_t columns) {
  const int threads = block.threads();
  block.ForThreads([&](int t) {
    for (int64_t c = t; c < columns; c += threads) {
      for (int64_t n = 0; n < count; ++n) {
        const int64_t k = reverse ? count - 1 - n : n, other = int64_t{pivots[k]} - 1;
        if (other < 0 || other >= rows || other == k) continue;
        const double value = b[k * columns + c];
        b[k * columns + c] = b[other * columns + c];
        b[other * columns + c] = value;
      }
    }
  });
}

}  // namespace polyop::linalg
