// SPDX-License-Identifier: Apache-2.0
// The computation for one matrix, which CPU and GPU share.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/host_device.h"
#include "core/tensor.h"
#include "ops/linalg/matrices.h"
#include "ops/linalg/svd/svd.h"
#include "ops/linalg/symmetric_eigen.h"
#include "ops/linalg/vectors.h"

namespace polyop {

constexpr int kMaxSweepsOfSvd = 40;

/// The Rotate that makes two vectors orthogonal, from their squares and their product, which is not 0.
struct PairRotation {
  double cosine, sine;

  POLYOP_HD PairRotation(double xx, double yy, double product) {
    const double zeta = (yy - xx) / (2 * product);
    const double tangent = std::copysign(1.0, zeta) / (std::fabs(zeta) + std::hypot(1.0, zeta));
    cosine = 1 / std::sqrt(1 + tangent * tangent);
    sine = cosine * tangent;
  }
};

/// Rotates vectors p and q until they are orthogonal: see Orthogonalize. Returns whether they were not.
template <class Vectors>
POLYOP_HD bool OrthogonalizePair(double* vectors, int64_t count, int64_t length, double* rotations, double tolerance,
                                 double* squares, int64_t p, int64_t q) {
  double *const x = vectors + p * length, *const y = vectors + q * length;
  const double product = Vectors::Dot(x, y, length);
  if (product == 0) return false;
  const double xx = squares[p], yy = squares[q];
  if (!(std::fabs(product) > tolerance * std::sqrt(xx) * std::sqrt(yy))) return false;
  const PairRotation rotation(xx, yy, product);
  Vectors::Rotate(x, y, length, rotation.cosine, rotation.sine);
  Vectors::Rotate(rotations + p * count, rotations + q * count, count, rotation.cosine, rotation.sine);
  squares[p] = Vectors::Dot(x, x, length);
  squares[q] = Vectors::Dot(y, y, length);
  return true;
}

/// Rotates `count` vectors of `length` elements until they are orthogonal, and the rows of `rotations` as they are
/// rotated (Hestenes). `tolerance` is the largest cosine between two vectors that count as orthogonal. `squares` and
/// `before` have space for `count` numbers. A vector that nearly disappears after the first sweep is a sum of others
/// but for rounding errors, which would never become orthogonal: it becomes 0.
template <class Vectors = linalg::PlainVectors>
POLYOP_HD void Orthogonalize(double* vectors, int64_t count, int64_t length, double* rotations, double tolerance,
                             double* squares, double* before) {
  constexpr double kDisappears = 0x1p-80;  // of squares
  bool rotated = true;
  for (int sweep = 0; rotated && sweep < kMaxSweepsOfSvd; ++sweep) {
    rotated = false;
    for (int64_t k = 0; k < count; ++k) {
      double* const vector = vectors + k * length;
      double square = Vectors::Dot(vector, vector, length);
      if (sweep > 1 && square < kDisappears * before[k]) {
        square = 0;
        for (int64_t i = 0; i < length; ++i) vector[i] = 0;
      }
      squares[k] = before[k] = square;
    }
    for (int64_t p = 0; p < count; ++p) {
      for (int64_t q = p + 1; q < count; ++q) {
        rotated |= OrthogonalizePair<Vectors>(vectors, count, length, rotations, tolerance, squares, p, q);
      }
    }
  }
}

/// The matrices of a call.
template <class T>
struct MatricesToDecompose {
  bool full, with_vectors, tall;
  int64_t rows, columns, longer, shorter, count;
  const T* from;
  T *u, *s, *vh;

  MatricesToDecompose(const Svd& op, const Tensor<const T, kAnyRank>& a, const Tensor<T, kAnyRank>& to_u,
                      const Tensor<T, kAnyRank>& to_s, const Tensor<T, kAnyRank>& to_vh)
      : full(op.full_matrices != 0),
        with_vectors(op.vectors != 0),
        tall(a.dim(a.rank() - 2) >= a.dim(a.rank() - 1)),
        rows(a.dim(a.rank() - 2)),
        columns(a.dim(a.rank() - 1)),
        longer(std::max(rows, columns)),
        shorter(std::min(rows, columns)),
        count(linalg::CountMatrices(a.shape())),
        from(a.data()),
        u(to_u.data()),
        s(to_s.data()),
        vh(to_vh.data()) {}

  /// The number of doubles that Decompose's `work` must have space for.
  int64_t WorkSize() const { return 2 * shorter * (longer + shorter) + 5 * shorter + longer; }
  double Operations() const {
    return 30 * static_cast<double>(shorter) * static_cast<double>(shorter) * static_cast<double>(longer);
  }

  /// Shorter vectors, of a matrix whose largest element is in [0.5, 1), may be inexact.
  static constexpr double kMinLength = 0x1p-900;

  /// The largest cosine between two vectors that count as orthogonal.
  POLYOP_HD double Tolerance() const {
    const double epsilon = std::is_same_v<T, float> ? 0x1p-42 : std::numeric_limits<double>::epsilon();
    return epsilon * (4 + std::sqrt(static_cast<double>(longer)));
  }

  /// The matrix is the sum of outer products of `shorter` pairs of vectors: the longer ones are columns of `u` if it is
  /// tall, otherwise rows of `vh`. These are its parts in the memory of WorkSize() numbers.
  struct Parts {
    double *given, *rotated, *rotations, *gram, *lengths, *taus, *order, *spare, *column;
  };
  POLYOP_HD Parts PartsOf(double* work) const {
    Parts parts;
    parts.given = work;
    parts.rotated = parts.given + shorter * longer;
    parts.rotations = parts.rotated + shorter * longer;
    parts.gram = parts.rotations + shorter * shorter;
    parts.lengths = parts.gram + shorter * shorter;
    parts.taus = parts.lengths + shorter;
    parts.order = parts.taus + shorter;
    parts.spare = parts.order + shorter;
    parts.column = parts.spare + 2 * shorter;
    return parts;
  }

  template <class Vectors = linalg::PlainVectors>
  POLYOP_HD void Decompose(int64_t n, double* work) const {
    const Parts parts = PartsOf(work);
    double *const given = parts.given, *const rotated = parts.rotated, *const rotations = parts.rotations,
                  *const gram = parts.gram;
    const double scale = Read(n, given);
    if (!(scale > 0)) return Fail(n);
    // The eigenvectors of the products of all vectors make them nearly orthogonal.
    for (int64_t k = 0; k < shorter; ++k) {
      for (int64_t j = 0; j <= k; ++j) {
        gram[k * shorter + j] = gram[j * shorter + k] = Vectors::Dot(given + k * longer, given + j * longer, longer);
      }
    }
    if (!linalg::SymmetricEigen<Vectors>(gram, shorter, parts.lengths, rotations, parts.spare)) {
      for (int64_t i = 0; i < shorter * shorter; ++i) rotations[i] = i % (shorter + 1) == 0 ? 1 : 0;
    }
    for (int64_t k = 0; k < shorter; ++k) {
      double* const to = rotated + k * longer;
      for (int64_t i = 0; i < longer; ++i) to[i] = 0;
      for (int64_t j = 0; j < shorter; ++j) {
        Vectors::SubtractRow(given + j * longer, -rotations[k * shorter + j], longer, to);
      }
    }
    Orthogonalize<Vectors>(rotated, shorter, longer, rotations, Tolerance(), parts.lengths, parts.order);
    Store(n, scale, parts);
  }

  /// Returns element `i` of vector `k` of `longer` elements of the given matrix.
  POLYOP_HD T ElementOfVector(int64_t n, int64_t k, int64_t i) const {
    return from[n * rows * columns + (tall ? i * columns + k : k * columns + i)];
  }

  /// Reads a matrix and scales its largest element to [0.5, 1). Returns the factor; NaN if an element is not finite.
  POLYOP_HD double Read(int64_t n, double* given) const {
    for (int64_t k = 0; k < shorter; ++k) {
      for (int64_t i = 0; i < longer; ++i) given[k * longer + i] = static_cast<double>(ElementOfVector(n, k, i));
    }
    const double scale = linalg::ScaleOf(given, shorter * longer);
    for (int64_t i = 0; i < shorter * longer; ++i) given[i] *= scale;
    return scale;
  }

  /// Stores the decomposition that orthogonal vectors, parts.rotated, and the rotations of the given ones to them have.
  POLYOP_HD void Store(int64_t n, double scale, const Parts& parts) const {
    double *const given = parts.given, *const rotated = parts.rotated, *const rotations = parts.rotations,
                  *const lengths = parts.lengths, *const order = parts.order, *const column = parts.column;
    for (int64_t k = 0; k < shorter; ++k) {
      lengths[k] = linalg::LengthOf(rotated + k * longer, longer);
      order[k] = static_cast<double>(k);
    }
    for (int64_t k = 0; k < shorter; ++k) {
      int64_t largest = k;
      for (int64_t j = k + 1; j < shorter; ++j) {
        if (lengths[j] > lengths[largest]) largest = j;
      }
      linalg::SwapElements(lengths + k, lengths + largest, 1);
      linalg::SwapElements(order + k, order + largest, 1);
      s[n * shorter + k] = static_cast<T>(lengths[k] / scale);
    }
    if (!with_vectors) return;
    if ((!full || longer == shorter) && lengths[shorter - 1] > kMinLength) {
      for (int64_t k = 0; k < shorter; ++k) {
        double* const vector = rotated + static_cast<int64_t>(order[k]) * longer;
        const double* const other = rotations + static_cast<int64_t>(order[k]) * shorter;
        for (int64_t i = 0; i < longer; ++i) vector[i] /= lengths[k];
        const double sign = tall ? linalg::SignOf(vector, longer) : linalg::SignOf(other, shorter);
        StorePair(n, k, sign, vector, sign, other);
      }
      return;
    }
    // The factor Q of orthogonal vectors has their directions, and orthonormal ones in place of zeros.
    for (int64_t k = 0; k < shorter; ++k) {
      const double* const vector = rotated + static_cast<int64_t>(order[k]) * longer;
      for (int64_t i = 0; i < longer; ++i) given[k * longer + i] = vector[i];
    }
    linalg::FactorQr(given, shorter, longer, parts.taus);
    for (int64_t k = 0; k < (full ? longer : shorter); ++k) {
      linalg::ColumnOfQ(given, shorter, longer, parts.taus, k, column);
      if (k >= shorter) {
        StoreLonger(n, k, linalg::SignOf(column, longer), column);
        continue;
      }
      const double* const other = rotations + static_cast<int64_t>(order[k]) * shorter;
      const double direction = given[k * longer + k] < 0 ? -1 : 1;
      const double sign = tall ? linalg::SignOf(column, longer) * direction : linalg::SignOf(other, shorter);
      StorePair(n, k, sign * direction, column, sign, other);
    }
  }

  /// Stores the vectors of singular value `k`, times these signs: of `longer` and of `shorter` elements.
  POLYOP_HD void StorePair(int64_t n, int64_t k, double sign, const double* vector, double other_sign,
                           const double* other) const {
    StoreLonger(n, k, sign, vector);
    for (int64_t i = 0; i < shorter; ++i) ElementOfShorter(n, k, i) = static_cast<T>(other_sign * other[i]);
  }

  /// Returns element `i` of the result's vector `k` of `longer` elements.
  POLYOP_HD T& ElementOfLonger(int64_t n, int64_t k, int64_t i) const {
    return tall ? u[(n * rows + i) * (full ? rows : shorter) + k]
                : vh[(n * (full ? columns : shorter) + k) * columns + i];
  }
  /// Returns element `i` of the result's vector `k` of `shorter` elements.
  POLYOP_HD T& ElementOfShorter(int64_t n, int64_t k, int64_t i) const {
    return tall ? vh[(n * (full ? columns : shorter) + k) * columns + i]
                : u[(n * rows + i) * (full ? rows : shorter) + k];
  }

  /// Stores NaN in the elements that thread `t` of `threads` computes.
  POLYOP_HD void Fail(int64_t n, int64_t t = 0, int64_t threads = 1) const {
    for (int64_t k = t; k < shorter; k += threads) s[n * shorter + k] = static_cast<T>(NAN);
    if (!with_vectors) return;
    const int64_t in_u = rows * (full ? rows : shorter), in_vh = columns * (full ? columns : shorter);
    for (int64_t i = t; i < in_u; i += threads) u[n * in_u + i] = static_cast<T>(NAN);
    for (int64_t i = t; i < in_vh; i += threads) vh[n * in_vh + i] = static_cast<T>(NAN);
  }

 private:
  POLYOP_HD void StoreLonger(int64_t n, int64_t k, double sign, const double* vector) const {
    for (int64_t i = 0; i < longer; ++i) ElementOfLonger(n, k, i) = static_cast<T>(sign * vector[i]);
  }
};

}  // namespace polyop
