// SPDX-License-Identifier: Apache-2.0
// The computation for one matrix, which CPU and GPU share.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/host_device.h"
#include "core/tensor.h"
#include "ops/linalg/eig/eig.h"
#include "ops/linalg/eig/schur.h"
#include "ops/linalg/matrices.h"
#include "ops/linalg/symmetric_eigen.h"
#include "ops/linalg/vectors.h"

namespace polyop {
namespace eig {

/// A complex number, for the GPU's compiler.
struct Number {
  double real, imaginary;
};

POLYOP_HD inline Number Multiply(const Number& x, const Number& y) {
  return {x.real * y.real - x.imaginary * y.imaginary, x.real * y.imaginary + x.imaginary * y.real};
}

/// Returns x / y without overflow of squares (Smith's algorithm).
POLYOP_HD inline Number Divide(const Number& x, const Number& y) {
  if (std::fabs(y.real) >= std::fabs(y.imaginary)) {
    const double ratio = y.imaginary / y.real, divisor = y.real + y.imaginary * ratio;
    return {(x.real + x.imaginary * ratio) / divisor, (x.imaginary - x.real * ratio) / divisor};
  }
  const double ratio = y.real / y.imaginary, divisor = y.real * ratio + y.imaginary;
  return {(x.real * ratio + x.imaginary) / divisor, (x.imaginary * ratio - x.real) / divisor};
}

/// A complex vector.
struct Numbers {
  double *real, *imaginary;

  POLYOP_HD Number Get(int64_t i) const { return {real[i], imaginary[i]}; }
  POLYOP_HD void Set(int64_t i, const Number& x) const {
    real[i] = x.real;
    imaginary[i] = x.imaginary;
  }
  POLYOP_HD void Scale(int64_t begin, int64_t end, const Number& by) const {
    for (int64_t i = begin; i < end; ++i) Set(i, Multiply(Get(i), by));
  }
};

/// Returns a number that is at least `least` in magnitude.
POLYOP_HD inline Number AwayFromZero(const Number& x, double least) {
  return std::fabs(x.real) + std::fabs(x.imaginary) < least ? Number{least, 0} : x;
}

/// Sets the elements of the eigenvector in the rows of the block of eigenvalue `index` of a Schur form, which is the
/// first one of a pair of conjugates. Returns the row after them.
POLYOP_HD inline int64_t StartVector(const linalg::SquareMatrix& t, int64_t index, const Number& value,
                                     const Numbers& x) {
  if (value.imaginary == 0) {
    x.Set(index, {1, 0});
    return index + 1;
  }
  // The first row is i value.imaginary x0 = above x1, and above * below = -value.imaginary^2.
  const double above = t.At(index, index + 1), below = t.At(index + 1, index);
  if (std::fabs(above) >= std::fabs(below)) {
    x.Set(index, {1, 0});
    x.Set(index + 1, {0, value.imaginary / above});
  } else {
    x.Set(index, {-value.imaginary / below, 0});
    x.Set(index + 1, {0, 1});
  }
  return index + 2;
}

/// Computes the elements [top, begin) of the vector with `end` elements for which (T - value I) x = 0, by
/// back-substitution. They are the right sides at first: without the products with elements of [begin, solved), but
/// with those of later elements. Scales the vector if it grows. `least` is the smallest divisor.
template <class Vectors = linalg::PlainVectors>
POLYOP_HD void SolveRowsOfSchur(const linalg::SquareMatrix& t, const Number& value, double least, int64_t top,
                                int64_t begin, int64_t solved, int64_t end, const Numbers& x) {
  constexpr double kMax = 0x1p200;
  const bool pair = value.imaginary != 0;
  for (int64_t i = begin - 1; i >= top; --i) {
    const bool block = i > top && t.At(i, i - 1) != 0;
    const auto rest = [&](int64_t row) {
      const double* const from = t.Row(row) + i + 1;
      const int64_t count = solved - i - 1;
      return Number{x.real[row] - Vectors::Dot(from, x.real + i + 1, count),
                    pair ? x.imaginary[row] - Vectors::Dot(from, x.imaginary + i + 1, count) : 0};
    };
    double largest;
    if (!block) {
      const Number divisor = AwayFromZero({t.At(i, i) - value.real, -value.imaginary}, least);
      const Number found = Divide(rest(i), divisor);
      x.Set(i, found);
      largest = std::fabs(found.real) + std::fabs(found.imaginary);
    } else {
      // Gaussian elimination of [a b; c d] with the larger pivot. b and c are real and not 0.
      const Number right = rest(i - 1), lower = rest(i);
      const Number a = {t.At(i - 1, i - 1) - value.real, -value.imaginary},
                   d = {t.At(i, i) - value.real, -value.imaginary};
      const double b = t.At(i - 1, i), c = t.At(i, i - 1);
      Number first, second;
      if (std::fabs(c) >= std::fabs(a.real) + std::fabs(a.imaginary)) {
        const Number factor = {a.real / c, a.imaginary / c}, product = Multiply(factor, d);
        const Number change = Multiply(factor, lower);
        const Number divisor = AwayFromZero({b - product.real, -product.imaginary}, least);
        second = Divide({right.real - change.real, right.imaginary - change.imaginary}, divisor);
        const Number known = Multiply(d, second);
        first = {(lower.real - known.real) / c, (lower.imaginary - known.imaginary) / c};
      } else {
        const Number factor = Divide({c, 0}, a), change = Multiply(factor, right);
        const Number divisor = AwayFromZero({d.real - factor.real * b, d.imaginary - factor.imaginary * b}, least);
        second = Divide({lower.real - change.real, lower.imaginary - change.imaginary}, divisor);
        first = Divide({right.real - b * second.real, right.imaginary - b * second.imaginary}, a);
      }
      x.Set(i, second);
      x.Set(--i, first);
      largest = std::fmax(std::fabs(first.real) + std::fabs(first.imaginary),
                          std::fabs(second.real) + std::fabs(second.imaginary));
    }
    if (largest > kMax) x.Scale(0, end, {1 / largest, 0});
  }
}

/// Makes an eigenvector of a balanced matrix one of the given matrix.
POLYOP_HD inline void UndoBalance(const linalg::Balance& balance, int64_t size, const Numbers& v) {
  const auto exchange = [&](int64_t i) {
    const auto j = static_cast<int64_t>(balance.factors[i]);
    linalg::SwapElements(v.real + i, v.real + j, 1);
    linalg::SwapElements(v.imaginary + i, v.imaginary + j, 1);
  };
  for (int64_t i = balance.first; i <= balance.last; ++i) v.Scale(i, i + 1, {balance.factors[i], 0});
  for (int64_t i = balance.first; i-- > 0;) exchange(i);
  for (int64_t i = balance.last + 1; i < size; ++i) exchange(i);
}

/// Gives an eigenvector the length 1, and makes the first of its largest elements real and positive.
POLYOP_HD inline void Normalize(const Numbers& v, int64_t size) {
  double largest = 0;
  for (int64_t i = 0; i < size; ++i)
    largest = std::fmax(largest, std::fmax(std::fabs(v.real[i]), std::fabs(v.imaginary[i])));
  double squares = 0, most = 0;
  for (int64_t i = 0; i < size; ++i) {
    v.Set(i, {v.real[i] / largest, v.imaginary[i] / largest});
    const double square = v.real[i] * v.real[i] + v.imaginary[i] * v.imaginary[i];
    most = std::fmax(most, square);
    squares += square;
  }
  int64_t pivot = 0;
  const auto square_of = [&](int64_t i) { return v.real[i] * v.real[i] + v.imaginary[i] * v.imaginary[i]; };
  while (pivot + 1 < size && !(square_of(pivot) >= 0.999 * 0.999 * most)) ++pivot;
  const double factor = 1 / (std::sqrt(square_of(pivot)) * std::sqrt(squares));
  v.Scale(0, size, {v.real[pivot] * factor, -v.imaginary[pivot] * factor});
  v.imaginary[pivot] = 0;
}

}  // namespace eig

/// The matrices of a call.
template <class T>
struct GeneralMatrices {
  bool with_vectors;
  int64_t size, count;
  const T* from;
  T *values, *basis;

  GeneralMatrices(const Eig& op, const Tensor<const T, kAnyRank>& a, const Tensor<T, kAnyRank>& to_values,
                  const Tensor<T, kAnyRank>& to_basis)
      : with_vectors(op.vectors != 0),
        size(a.dim(a.rank() - 1)),
        count(linalg::CountMatrices(a.shape())),
        from(a.data()),
        values(to_values.data()),
        basis(to_basis.data()) {}

  /// The number of doubles that Decompose's `work` must have space for.
  int64_t WorkSize() const { return size * (2 * size + 7); }
  double Operations() const {
    return static_cast<double>(size) * static_cast<double>(size) *
           static_cast<double>(with_vectors ? 25 * size : 10 * size);
  }

  POLYOP_HD void Decompose(int64_t n, double* work) const {
    const int64_t area = size * size;
    const linalg::SquareMatrix a = {work, size, size};
    double *const vectors = work + area, *const factors = vectors + area, *const real = factors + size,
                  *const imaginary = real + size, *const spare = imaginary + size;
    for (int64_t e = 0; e < area; ++e) work[e] = static_cast<double>(from[n * area + e]);
    const double scale = linalg::ScaleOf(work, area);
    bool converged = scale > 0;
    linalg::Balance balance = {0, size - 1, factors};
    if (converged) {
      for (int64_t e = 0; e < area; ++e) {
        work[e] *= scale;
        vectors[e] = e % (size + 1) == 0 ? 1 : 0;
      }
      double* const to = with_vectors ? vectors : nullptr;
      linalg::Permute(a, balance);
      linalg::Scale(a, balance);
      linalg::ReduceToHessenberg(a, balance, to, spare);
      converged = linalg::SchurOfHessenberg(a, balance, to, real, imaginary);
    }
    if (!converged) return Fail(n);
    for (int64_t k = 0; k < size; ++k) {
      values[2 * (n * size + k)] = static_cast<T>(real[k] / scale + 0.0);  // +0, never -0
      values[2 * (n * size + k) + 1] = static_cast<T>(imaginary[k] / scale + 0.0);
    }
    if (!with_vectors) return;
    double norm = 0;
    for (int64_t e = 0; e < area; ++e) norm = std::fmax(norm, std::fabs(work[e]));
    const double least = std::fmax(std::numeric_limits<double>::epsilon() * norm, 0x1p-900);
    const eig::Numbers x = {spare, spare + size}, v = {spare + 2 * size, spare + 3 * size};
    for (int64_t k = 0; k < size; ++k) {
      for (int64_t i = 0; i < size; ++i) {
        x.Set(i, {0, 0});
        v.Set(i, {0, 0});
      }
      const eig::Number value = {real[k], imaginary[k]};
      const int64_t end = eig::StartVector(a, k, value, x);
      eig::SolveRowsOfSchur(a, value, least, 0, k, end, end, x);
      for (int64_t j = 0; j < end; ++j) {
        linalg::SubtractRow(vectors + j * size, -x.real[j], size, v.real);
        if (imaginary[k] != 0) linalg::SubtractRow(vectors + j * size, -x.imaginary[j], size, v.imaginary);
      }
      eig::UndoBalance(balance, size, v);
      Store(n, k, imaginary[k] != 0, v);
      if (imaginary[k] != 0) ++k;
    }
  }

  /// Stores eigenvector `k`, and the conjugate one after it if it is one of a pair.
  POLYOP_HD void Store(int64_t n, int64_t k, bool pair, const eig::Numbers& v) const {
    eig::Normalize(v, size);
    for (int64_t i = 0; i < size; ++i) {
      T* const to = basis + 2 * ((n * size + i) * size + k);
      to[0] = static_cast<T>(v.real[i] + 0.0);
      to[1] = static_cast<T>(v.imaginary[i] + 0.0);
      if (!pair) continue;
      to[2] = to[0];
      to[3] = static_cast<T>(0.0 - v.imaginary[i]);
    }
  }

  POLYOP_HD void Fail(int64_t n) const {
    for (int64_t i = 0; i < 2 * size; ++i) values[2 * n * size + i] = static_cast<T>(NAN);
    for (int64_t i = 0; with_vectors && i < 2 * size * size; ++i) basis[2 * n * size * size + i] = static_cast<T>(NAN);
  }
};

}  // namespace polyop
