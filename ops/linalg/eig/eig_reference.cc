// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "ops/linalg/eig/eig.h"
#include "ops/linalg/eig/eig_of_matrix.h"

namespace polyop {
namespace {

using EigNumber = std::complex<double>;
using EigNumbers = std::vector<EigNumber>;

// A complex matrix Q T Q^*, of which T becomes upper triangular by single shifts. Its rows are stored as vectors.
struct EigSchur {
  std::vector<EigNumbers> t, q;

  explicit EigSchur(size_t size) : t(size, EigNumbers(size)), q(size, EigNumbers(size)) {
    for (size_t i = 0; i < size; ++i) q[i][i] = 1;
  }

  // Rotates rows i and j so that an element below x = t(i, .) becomes 0, and the columns by the conjugate.
  void Rotate(size_t i, size_t j, EigNumber x, EigNumber y) {
    const double length = std::hypot(std::abs(x), std::abs(y));
    if (length == 0) return;
    x /= length;
    y /= length;
    for (size_t k = 0; k < t.size(); ++k) {
      const EigNumber first = t[i][k];
      t[i][k] = std::conj(x) * first + std::conj(y) * t[j][k];
      t[j][k] = x * t[j][k] - y * first;
    }
    for (std::vector<EigNumbers>* const matrix : {&t, &q}) {
      for (EigNumbers& row : *matrix) {
        const EigNumber first = row[i];
        row[i] = x * first + y * row[j];
        row[j] = std::conj(x) * row[j] - std::conj(y) * first;
      }
    }
  }

  EigNumber Shift(size_t last, int step) const {
    if (step % 10 == 9) return t[last][last] + std::abs(t[last][last - 1]);
    const EigNumber a = t[last - 1][last - 1], d = t[last][last], half = (a - d) / 2.0;
    const EigNumber root = std::sqrt(half * half + t[last - 1][last] * t[last][last - 1]);
    return std::abs(half + root) < std::abs(half - root) ? d + half + root : d + half - root;
  }

  bool Triangularize() {
    constexpr int kMaxSteps = 300;
    for (size_t k = 0; k + 2 < t.size(); ++k) {
      for (size_t i = k + 2; i < t.size(); ++i) {
        Rotate(k + 1, i, t[k + 1][k], t[i][k]);
        t[i][k] = 0;
      }
    }
    for (size_t last = t.size() - 1; last > 0; --last) {
      for (int step = 0;; ++step) {
        size_t start = last;
        while (start > 0 &&
               std::abs(t[start][start - 1]) > std::numeric_limits<double>::epsilon() *
                                                   (std::abs(t[start - 1][start - 1]) + std::abs(t[start][start]))) {
          --start;
        }
        if (start > 0) t[start][start - 1] = 0;
        if (start == last) break;
        if (step == kMaxSteps) return false;
        EigNumber x = t[start][start] - Shift(last, step), y = t[start + 1][start];
        for (size_t k = start; k < last; ++k) {
          Rotate(k, k + 1, x, y);
          if (k > start) t[k + 1][k - 1] = 0;
          if (k + 1 == last) break;
          x = t[k + 1][k];
          y = t[k + 2][k];
        }
      }
    }
    return true;
  }

  EigNumbers Eigenvector(size_t k) const {
    EigNumbers x(t.size()), v(t.size());
    x[k] = 1;
    for (size_t i = k; i-- > 0;) {
      EigNumber sum = 0, divisor = t[i][i] - t[k][k];
      for (size_t j = i + 1; j <= k; ++j) sum -= t[i][j] * x[j];
      if (std::abs(divisor) < std::numeric_limits<double>::epsilon()) divisor = std::numeric_limits<double>::epsilon();
      x[i] = sum / divisor;
      const double size = std::abs(x[i]);
      if (size < 1e100) continue;
      for (EigNumber& number : x) number /= size;
    }
    double length = 0, largest = 0;
    for (size_t i = 0; i < v.size(); ++i) {
      for (size_t j = 0; j <= k; ++j) v[i] += q[i][j] * x[j];
      length = std::hypot(length, std::abs(v[i]));
      largest = std::max(largest, std::abs(v[i]));
    }
    const EigNumber pivot = *std::ranges::find_if(v, [&](EigNumber z) { return std::abs(z) >= 0.999 * largest; });
    for (EigNumber& z : v) z *= std::conj(pivot) / std::abs(pivot) / length;
    return v;
  }
};

// Returns the indices of the eigenvalues in the order of the kernel's eigenvalues, which the algorithm determines.
std::vector<size_t> EigOrder(const EigSchur& schur, const std::vector<double>& ordered) {
  std::vector<size_t> left, order;
  for (size_t i = 0; i < schur.t.size(); ++i) left.push_back(i);
  for (size_t k = 0; k < schur.t.size(); ++k) {
    const EigNumber value(ordered[2 * k], ordered[2 * k + 1]);
    const auto nearest = std::ranges::min_element(left, {}, [&](size_t i) { return std::abs(schur.t[i][i] - value); });
    order.push_back(*nearest);
    left.erase(nearest);
  }
  return order;
}

Status EigReference(const Eig& op, const Context&, Tensor<const double, kAnyRank> a, Tensor<double, kAnyRank> values,
                    Tensor<double, kAnyRank> basis) {
  POLYOP_RETURN_IF_ERROR(op.CheckFinite(a.data(), a.size()));
  const int64_t size = a.dim(a.rank() - 1), area = size * size, count = linalg::CountMatrices(a.shape());
  for (int64_t n = 0; n < count && size > 0; ++n) {
    EigSchur schur(static_cast<size_t>(size));
    std::vector<double> scaled(a.data() + n * area, a.data() + (n + 1) * area);
    double largest = 0;
    for (const double x : scaled) largest = std::isfinite(x) ? std::max(largest, std::fabs(x)) : NAN;
    const int exponent = largest > 0 ? std::ilogb(largest) : 0;
    for (size_t e = 0; e < scaled.size(); ++e) {
      scaled[e] = std::scalbn(scaled[e], -exponent);
      schur.t[e / schur.t.size()][e % schur.t.size()] = scaled[e];
    }
    const bool done = std::isfinite(largest) && schur.Triangularize();
    std::vector<size_t> order(schur.t.size());
    if (done) {
      std::vector<double> ordered(2 * schur.t.size());
      const Shape shape = {size, size};
      const GeneralMatrices<double> matrices(Eig{.vectors = 0}, Tensor<const double, kAnyRank>(scaled.data(), shape),
                                             Tensor<double, kAnyRank>(ordered.data(), {size, 2}),
                                             Tensor<double, kAnyRank>(nullptr, {size, 0, 2}));
      std::vector<double> work(static_cast<size_t>(matrices.WorkSize()));
      matrices.Decompose(0, work.data());
      order = EigOrder(schur, ordered);
    }
    for (int64_t k = 0; k < size; ++k) {
      const size_t index = order[static_cast<size_t>(k)];
      const EigNumber value = done ? schur.t[index][index] : EigNumber(NAN, NAN);
      values[2 * (n * size + k)] = std::scalbn(value.real(), exponent);
      values[2 * (n * size + k) + 1] = std::scalbn(value.imag(), exponent);
      if (op.vectors == 0) continue;
      const EigNumbers vector = done ? schur.Eigenvector(index) : EigNumbers(schur.t.size(), EigNumber(NAN, NAN));
      for (int64_t i = 0; i < size; ++i) {
        basis[2 * (n * area + i * size + k)] = vector[static_cast<size_t>(i)].real();
        basis[2 * (n * area + i * size + k) + 1] = vector[static_cast<size_t>(i)].imag();
      }
    }
  }
  return op.CheckConverged(a.shape(), values.data(), 2 * size);
}
POLYOP_REFERENCE_KERNEL(Eig, EigReference);

}  // namespace
}  // namespace polyop
