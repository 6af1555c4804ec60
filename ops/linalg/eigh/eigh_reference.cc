// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/linalg/eigh/eigh.h"

namespace polyop {
namespace {

using EighRows = std::vector<std::vector<double>>;

// Jacobi's algorithm: rotates pairs of rows and columns until the elements outside of the diagonal are negligible.
void DiagonalizeByJacobi(EighRows& a, EighRows& vectors) {
  constexpr int kMaxSweeps = 60;
  const size_t size = a.size();
  double total = 0;
  for (const std::vector<double>& row : a) {
    for (const double x : row) total = std::hypot(total, x);
  }
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    double outside = 0;
    for (size_t p = 0; p < size; ++p) {
      for (size_t q = p + 1; q < size; ++q) {
        outside = std::max(outside, std::fabs(a[p][q]));
        if (std::fabs(a[p][q]) <= total * 1e-18) continue;
        const double angle = 0.5 * std::atan2(2 * a[p][q], a[q][q] - a[p][p]);
        const double c = std::cos(angle), s = std::sin(angle);
        const auto rotate = [&](double& x, double& y) {
          const double first = x;
          x = c * first - s * y;
          y = s * first + c * y;
        };
        for (size_t k = 0; k < size; ++k) rotate(a[p][k], a[q][k]);
        for (size_t k = 0; k < size; ++k) rotate(a[k][p], a[k][q]);
        for (size_t k = 0; k < size; ++k) rotate(vectors[p][k], vectors[q][k]);
      }
    }
    if (outside <= total * 1e-18) return;
  }
}

Status EighReference(const Eigh& op, const Context&, Tensor<const double, kAnyRank> a, Tensor<double, kAnyRank> values,
                     Tensor<double, kAnyRank> basis) {
  const auto size = static_cast<size_t>(a.dim(a.rank() - 1));
  int64_t read = 0, value = 0, first = 0;
  for (; value < values.size(); first += static_cast<int64_t>(size * size)) {
    EighRows matrix(size, std::vector<double>(size)), vectors = matrix;
    bool finite = true;
    for (size_t i = 0; i < size; ++i) {
      vectors[i][i] = 1;
      for (size_t j = 0; j < size; ++j) {
        const double x = a[read++];
        if ((j <= i) == (op.upper != 0) && i != j) continue;
        matrix[i][j] = matrix[j][i] = x;
        finite = finite && std::isfinite(x);
      }
    }
    if (finite) DiagonalizeByJacobi(matrix, vectors);
    std::vector<size_t> order(size);
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t i) { return matrix[i][i]; });
    for (size_t k = 0; k < size; ++k) {
      values[value++] = finite ? matrix[order[k]][order[k]] : NAN;
      if (op.vectors == 0) continue;
      const std::vector<double>& vector = vectors[order[k]];
      double largest = 0;
      for (const double x : vector) largest = std::max(largest, std::fabs(x));
      const auto sign = std::ranges::find_if(vector, [&](double x) { return std::fabs(x) >= 0.999 * largest; });
      for (size_t i = 0; i < size; ++i) {
        basis[first + static_cast<int64_t>(i * size + k)] = finite ? std::copysign(1.0, *sign) * vector[i] : NAN;
      }
    }
  }
  return op.CheckConverged(a.shape(), values.data(), values.dim(values.rank() - 1));
}
POLYOP_REFERENCE_KERNEL(Eigh, EighReference);

}  // namespace
}  // namespace polyop
