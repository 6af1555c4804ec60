// The computation for one matrix, which CPU and GPU share.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/host_device.h"
#include "core/tensor.h"
#include "families/linalg/matrices.h"
#include "families/linalg/symmetric_eigen.h"
#include "families/linalg/vectors.h"
#include "ops/eig/eig.h"
#include "ops/eig/schur.h"

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

/// Computes the eigenvector of eigenvalue `index` of a Schur form, which is the first one of a pair of conjugates: the
/// elements up to that eigenvalue's block, by back-substitution. `least` is the smallest divisor. Returns the number of
/// elements; the others are 0.
POLYOP_HD inline int64_t VectorOfSchur(const linalg::SquareMatrix& t, int64_t index, const Number& value, double least,
                                       const Numbers& x) {
  constexpr double kMax = 0x1p200;
  const bool pair = value.imaginary != 0;
  const int64_t end = index + (pair ? 2 : 1);
  if (pair) {  // the first row is i value.imaginary x0 = above x1, and above * below = -value.imaginary^2
    const double above = t.At(index, index + 1), below = t.At(index + 1, index);
    if (std::fabs(above) >= std::fabs(below)) {
      x.Set(index, {1, 0});
      x.Set(index + 1, {0, value.imaginary / above});
    } else {
      x.Set(index, {-value.imaginary / below, 0});
      x.Set(index + 1, {0, 1});
    }
  } else {
    x.Set(index, {1, 0});
  }
  for (int64_t i = index - 1; i >= 0; --i) {
    const bool block = i > 0 && t.At(i, i - 1) != 0;
    const auto rest = [&](int64_t row) {
      const double* const from = t.Row(row) + i + 1;
      return Number{-linalg::Dot(from, x.real + i + 1, end - i - 1),
                    pair ? -linalg::Dot(from, x.imaginary + i + 1, end - i - 1) : 0};
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
    if (largest > kMax) x.Scale(i, end, {1 / largest, 0});
  }
  return end;
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
    const linalg::SquareMatrix a = {work, size};
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
      values[2 * (n * size + k)] = static_cast<T>(real[k] / scale);
      values[2 * (n * size + k) + 1] = static_cast<T>(imaginary[k] / scale);
    }
    if (!with_vectors) return;
    double norm = 0;
    for (int64_t e = 0; e < area; ++e) norm = std::fmax(norm, std::fabs(work[e]));
    const double least = std::fmax(std::numeric_limits<double>::epsilon() * norm, 0x1p-900);
    const eig::Numbers x = {spare, spare + size}, v = {spare + 2 * size, spare + 3 * size};
    for (int64_t k = 0; k < size; ++k) {
      const int64_t end = eig::VectorOfSchur(a, k, {real[k], imaginary[k]}, least, x);
      for (int64_t i = 0; i < size; ++i) v.Set(i, {0, 0});
      for (int64_t j = 0; j < end; ++j) {
        linalg::SubtractRow(vectors + j * size, -x.real[j], size, v.real);
        if (imaginary[k] != 0) linalg::SubtractRow(vectors + j * size, -x.imaginary[j], size, v.imaginary);
      }
      for (int64_t i = balance.first; i <= balance.last; ++i) v.Scale(i, i + 1, {factors[i], 0});
      for (int64_t i = balance.first; i-- > 0;) Exchange(v, i, static_cast<int64_t>(factors[i]));
      for (int64_t i = balance.last + 1; i < size; ++i) Exchange(v, i, static_cast<int64_t>(factors[i]));
      Store(n, k, imaginary[k] != 0, v);
      if (imaginary[k] != 0) ++k;
    }
  }

 private:
  POLYOP_HD static void Exchange(const eig::Numbers& v, int64_t i, int64_t j) {
    linalg::SwapElements(v.real + i, v.real + j, 1);
    linalg::SwapElements(v.imaginary + i, v.imaginary + j, 1);
  }

  /// Stores eigenvector `k` with length 1, and the conjugate one after it if it is one of a pair.
  POLYOP_HD void Store(int64_t n, int64_t k, bool pair, const eig::Numbers& v) const {
    double largest = 0;
    for (int64_t i = 0; i < size; ++i) largest = std::fmax(largest, std::hypot(v.real[i], v.imaginary[i]));
    for (int64_t i = 0; i < size; ++i) v.Set(i, {v.real[i] / largest, v.imaginary[i] / largest});
    int64_t pivot = 0;
    while (pivot + 1 < size && !(std::hypot(v.real[pivot], v.imaginary[pivot]) >= 0.999)) ++pivot;
    const double length = std::hypot(linalg::LengthOf(v.real, size), linalg::LengthOf(v.imaginary, size));
    const double magnitude = std::hypot(v.real[pivot], v.imaginary[pivot]);
    v.Scale(0, size, {v.real[pivot] / magnitude / length, -v.imaginary[pivot] / magnitude / length});
    v.imaginary[pivot] = 0;
    for (int64_t i = 0; i < size; ++i) {
      T* const to = basis + 2 * ((n * size + i) * size + k);
      to[0] = static_cast<T>(v.real[i]);
      to[1] = static_cast<T>(v.imaginary[i]);
      if (!pair) continue;
      to[2] = to[0];
      to[3] = -to[1];
    }
  }

  POLYOP_HD void Fail(int64_t n) const {
    for (int64_t i = 0; i < 2 * size; ++i) values[2 * n * size + i] = static_cast<T>(NAN);
    for (int64_t i = 0; with_vectors && i < 2 * size * size; ++i) basis[2 * n * size * size + i] = static_cast<T>(NAN);
  }
};

}  // namespace polyop
