// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/linalg/matrices.h"
#include "ops/linalg/qr/qr.h"

namespace polyop {
namespace {

using QrRows = std::vector<std::vector<double>>;

// Multiplies R from the left, and Q from the right, by each reflection as a matrix.
Status QrReference(const Qr&, const Context&, Tensor<const double, kAnyRank> a, Tensor<double, kAnyRank> q,
                   Tensor<double, kAnyRank> r) {
  const auto rows = static_cast<size_t>(a.dim(a.rank() - 2)), columns = static_cast<size_t>(a.dim(a.rank() - 1));
  const auto basis = static_cast<size_t>(q.dim(q.rank() - 1));
  const size_t area = rows * columns;
  for (size_t n = 0; n < static_cast<size_t>(linalg::CountMatrices(a.shape())); ++n) {
    QrRows triangle(rows, std::vector<double>(columns)), product(rows, std::vector<double>(rows, 0.0));
    for (size_t e = 0; e < area; ++e) triangle[e / columns][e % columns] = a[static_cast<int64_t>(n * area + e)];
    for (size_t i = 0; i < rows; ++i) product[i][i] = 1;
    for (size_t k = 0; k < std::min(rows, columns); ++k) {
      double length = 0;
      for (size_t i = k + 1; i < rows; ++i) length = std::hypot(length, triangle[i][k]);
      if (length == 0) continue;
      const double first = triangle[k][k], beta = std::copysign(std::hypot(first, length), -first);
      std::vector<double> v(rows, 0.0);
      v[k] = 1;
      for (size_t i = k + 1; i < rows; ++i) v[i] = triangle[i][k] / (first - beta);
      const double tau = (beta - first) / beta;
      for (size_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (size_t i = k; i < rows; ++i) sum += v[i] * triangle[i][j];
        for (size_t i = k; i < rows; ++i) triangle[i][j] -= tau * sum * v[i];
      }
      for (size_t i = 0; i < rows; ++i) {
        double sum = 0;
        for (size_t j = k; j < rows; ++j) sum += product[i][j] * v[j];
        for (size_t j = k; j < rows; ++j) product[i][j] -= tau * sum * v[j];
      }
    }
    for (size_t i = 0; i < rows; ++i) {
      for (size_t j = 0; j < basis; ++j) q[static_cast<int64_t>((n * rows + i) * basis + j)] = product[i][j];
    }
    for (size_t i = 0; i < basis; ++i) {
      for (size_t j = 0; j < columns; ++j) {
        r[static_cast<int64_t>((n * basis + i) * columns + j)] = j < i ? 0 : triangle[i][j];
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(Qr, QrReference);

}  // namespace
}  // namespace polyop
