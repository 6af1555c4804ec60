// SPDX-License-Identifier: Apache-2.0
// The singular value decomposition of a matrix by the threads of a block. All threads of the block, or of the warp,
// must call these functions together.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/warp_lanes.h"
#include "ops/linalg/block_eigen_cuda.h"
#include "ops/linalg/block_householder_cuda.h"
#include "ops/linalg/svd/svd_of_matrix.h"

namespace polyop::svd {

using linalg::BlockEigenShared;
using linalg::ForEachByWarp;
using linalg::ForElements;
using linalg::ForElementsOfWarp;
using linalg::InFirstLane;

struct PairProducts {
  double xx, yy, xy;
};

/// Computes what OrthogonalizePair does, without the squares.
POLYOP_DEVICE inline bool OrthogonalizePairInWarp(double* vectors, int64_t count, int64_t length, double* rotations,
                                                  double tolerance, int64_t p, int64_t q) {
  double *const x = vectors + p * length, *const y = vectors + q * length;
  Lanes<PairProducts> sums;
  ForLanes([&](int lane) { sums[lane] = {0, 0, 0}; });
  ForElementsOfWarp(0, length, [&](int64_t i, int lane) {
    PairProducts& sum = sums[lane];
    sum = {sum.xx + x[i] * x[i], sum.yy + y[i] * y[i], sum.xy + x[i] * y[i]};
  });
  const PairProducts sum = sums.Reduce(
      [](const PairProducts& a, const PairProducts& b) { return PairProducts{a.xx + b.xx, a.yy + b.yy, a.xy + b.xy}; });
  if (sum.xy == 0 || !(std::fabs(sum.xy) > tolerance * std::sqrt(sum.xx) * std::sqrt(sum.yy))) return false;
  const PairRotation rotation(sum.xx, sum.yy, sum.xy);
  const auto rotate = [&](double* a, double* b, int64_t size) {
    ForElementsOfWarp(0, size,
                      [&](int64_t i, int) { linalg::Rotate(a + i, b + i, 1, rotation.cosine, rotation.sine); });
  };
  rotate(x, y, length);
  rotate(rotations + p * count, rotations + q * count, count);
  return true;
}

/// Computes what Orthogonalize does. In each round of a sweep, every vector is in one pair, and every pair is in one
/// round.
POLYOP_DEVICE inline void OrthogonalizeInBlock(Block& block, double* vectors, int64_t count, int64_t length,
                                               double* rotations, double tolerance, const BlockEigenShared& shared) {
  const int warps = block.threads() / kWarpLanes;
  const int64_t rounds = (count - 1) | 1;   // an odd count has a pair without a second vector in each round
  double* const rotated = shared.of_warps;  // whether the warp has rotated
  bool any = true;
  for (int sweep = 0; any && sweep < kMaxSweepsOfSvd; ++sweep) {
    block.ForThreads([&](int t) {
      if (t < warps) rotated[t] = 0;
    });
    for (int64_t round = 0; round < rounds; ++round) {
      ForEachByWarp(block, 0, (rounds + 1) / 2, [&](int64_t pair, int warp) {
        const int64_t p = (round + pair) % rounds, q = pair == 0 ? rounds : (round + rounds - pair) % rounds;
        if (p >= count || q >= count) return;
        if (!OrthogonalizePairInWarp(vectors, count, length, rotations, tolerance, p < q ? p : q, p < q ? q : p))
          return;
        InFirstLane([&] { rotated[warp] = 1; });
      });
    }
    any = false;
    for (int warp = 0; warp < warps; ++warp) any |= rotated[warp] != 0;
    block.ForThreads([](int) {});  // until all threads have read
  }
}

/// The parts of a block's scratch memory.
struct BlockParts {
  double *given, *rotated, *rotations, *gram, *lengths, *order, *taus, *work, *columns;

  POLYOP_HD static int64_t Size(int64_t longer, int64_t shorter) {
    return 2 * shorter * (longer + shorter) + 3 * shorter + linalg::BlockEigenWork(shorter) +
           linalg::kMaxBlockWarps * longer;
  }
  POLYOP_HD BlockParts(double* memory, int64_t longer, int64_t shorter)
      : given(memory),
        rotated(given + shorter * longer),
        rotations(rotated + shorter * longer),
        gram(rotations + shorter * shorter),
        lengths(gram + shorter * shorter),
        order(lengths + shorter),
        taus(order + shorter),
        work(taus + shorter),
        columns(work + linalg::BlockEigenWork(shorter)) {}

  /// Returns the index of the vector of singular value `k`.
  POLYOP_HD int64_t VectorOf(int64_t k) const { return static_cast<int64_t>(order[k]); }
};

/// Computes what MatricesToDecompose::Store does.
template <class T>
POLYOP_DEVICE void StoreInBlock(Block& block, int64_t n, const MatricesToDecompose<T>& matrices, double scale,
                                const BlockParts& parts) {
  const int64_t longer = matrices.longer, shorter = matrices.shorter;
  ForEachByWarp(block, 0, shorter, [&](int64_t k, int) {
    const double length = linalg::LengthInWarp(parts.rotated + k * longer, 0, longer);
    InFirstLane([&] { parts.lengths[k] = length; });
  });
  linalg::OrderInBlock(block, parts.lengths, shorter, [](double x, double y) { return x > y; }, parts.order);
  block.ForThreads([&](int t) {
    for (int64_t k = t; k < shorter; k += block.threads()) {
      matrices.s[n * shorter + k] = static_cast<T>(parts.lengths[parts.VectorOf(k)] / scale);
    }
  });
  if (!matrices.with_vectors) return;
  const bool tall = matrices.tall, full = matrices.full;
  const auto store = [&](int64_t k, double sign, const double* vector, double other_sign, const double* other) {
    ForElementsOfWarp(0, longer,
                      [&](int64_t i, int) { matrices.ElementOfLonger(n, k, i) = static_cast<T>(sign * vector[i]); });
    if (other == nullptr) return;
    ForElementsOfWarp(0, shorter, [&](int64_t i, int) {
      matrices.ElementOfShorter(n, k, i) = static_cast<T>(other_sign * other[i]);
    });
  };
  if ((!full || longer == shorter) && parts.lengths[parts.VectorOf(shorter - 1)] > MatricesToDecompose<T>::kMinLength) {
    ForEachByWarp(block, 0, shorter, [&](int64_t k, int) {
      double* const vector = parts.rotated + parts.VectorOf(k) * longer;
      const double* const other = parts.rotations + parts.VectorOf(k) * shorter;
      const double length = parts.lengths[parts.VectorOf(k)];
      ForElementsOfWarp(0, longer, [&](int64_t i, int) { vector[i] /= length; });
      const double sign = tall ? linalg::SignInWarp(vector, longer) : linalg::SignInWarp(other, shorter);
      store(k, sign, vector, sign, other);
    });
    return;
  }
  // The factor Q of orthogonal vectors has their directions, and orthonormal ones in place of zeros.
  ForElements(block, 0, shorter, 0, longer, [&](int64_t k, int64_t i) {
    parts.given[k * longer + i] = parts.rotated[parts.VectorOf(k) * longer + i];
  });
  linalg::FactorQrInBlock(block, parts.given, shorter, longer, parts.taus);
  ForEachByWarp(block, 0, full ? longer : shorter, [&](int64_t k, int warp) {
    double* const column = parts.columns + warp * longer;
    linalg::ColumnOfQInWarp(parts.given, shorter, longer, parts.taus, k, column);
    if (k >= shorter) return store(k, linalg::SignInWarp(column, longer), column, 0, nullptr);
    const double* const other = parts.rotations + parts.VectorOf(k) * shorter;
    const double direction = parts.given[k * longer + k] < 0 ? -1 : 1;
    const double sign = tall ? linalg::SignInWarp(column, longer) * direction : linalg::SignInWarp(other, shorter);
    store(k, sign * direction, column, sign, other);
  });
}

/// Computes what MatricesToDecompose::Decompose does, for matrix n.
template <class T>
POLYOP_DEVICE void DecomposeInBlock(Block& block, int64_t n, const MatricesToDecompose<T>& matrices,
                                    const BlockParts& parts, const BlockEigenShared& shared) {
  const int64_t longer = matrices.longer, shorter = matrices.shorter;
  double *const given = parts.given, *const rotations = parts.rotations, *const gram = parts.gram;
  ForElements(block, 0, shorter, 0, longer, [&](int64_t k, int64_t i) {
    given[k * longer + i] = static_cast<double>(matrices.ElementOfVector(n, k, i));
  });
  const double scale = linalg::ScaleInBlock(block, given, shorter * longer, shared);
  if (!(scale > 0)) {
    block.ForThreads([&](int t) { matrices.Fail(n, t, block.threads()); });
    return;
  }
  ForElements(block, 0, shorter, 0, longer, [&](int64_t k, int64_t i) { given[k * longer + i] *= scale; });
  // The eigenvectors of the products of all vectors make them nearly orthogonal.
  ForEachByWarp(block, 0, shorter * shorter, [&](int64_t e, int) {
    const int64_t k = e / shorter, j = e % shorter;
    if (j > k) return;
    const double sum =
        linalg::SumInWarp(0, longer, [&](int64_t i) { return given[k * longer + i] * given[j * longer + i]; });
    InFirstLane([&] { gram[k * shorter + j] = gram[j * shorter + k] = sum; });
  });
  const double gram_scale = linalg::ScaleInBlock(block, gram, shorter * shorter, shared);
  if (!linalg::SymmetricEigenInBlock(block, gram, gram_scale, shorter, parts.lengths, parts.order, rotations,
                                     parts.work, shared)) {
    ForElements(block, 0, shorter, 0, shorter,
                [&](int64_t i, int64_t j) { rotations[i * shorter + j] = i == j ? 1 : 0; });
  }
  ForElements(block, 0, shorter, 0, longer, [&](int64_t k, int64_t i) {
    double sum = 0;
    for (int64_t j = 0; j < shorter; ++j) sum += rotations[k * shorter + j] * given[j * longer + i];
    parts.rotated[k * longer + i] = sum;
  });
  OrthogonalizeInBlock(block, parts.rotated, shorter, longer, rotations, matrices.Tolerance(), shared);
  StoreInBlock(block, n, matrices, scale, parts);
}

}  // namespace polyop::svd
