// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "ops/linalg/matrix_factors/matrix_factors.h"

namespace polyop {
namespace {

using FactorRows = std::vector<std::vector<double>>;

// Computes each element of L and U by its formula (Doolittle), column by column. A pivot of 0 eliminates nothing.
int32_t ReferenceLu(FactorRows& a, size_t columns, int32_t* pivots) {
  int32_t info = 0;
  for (size_t j = 0; j < columns; ++j) {
    for (size_t i = 0; i < a.size(); ++i) {
      for (size_t k = 0; k < std::min(i, j); ++k) {
        if (a[k][k] != 0) a[i][j] -= a[i][k] * a[k][j];
      }
    }
    if (j >= a.size()) continue;
    size_t best = j;
    for (size_t i = j + 1; i < a.size(); ++i) {
      if (std::fabs(a[i][j]) > std::fabs(a[best][j])) best = i;
    }
    std::swap(a[j], a[best]);
    pivots[j] = static_cast<int32_t>(best + 1);
    if (a[j][j] == 0 && info == 0) info = static_cast<int32_t>(j + 1);
    for (size_t i = j + 1; i < a.size() && a[j][j] != 0; ++i) a[i][j] /= a[j][j];
  }
  return info;
}

// Computes L column by column. Elements after a minor that is not positive have the values that a computation by rows
// has: those of the rows above are factors, and the others unchanged.
int32_t ReferenceCholesky(FactorRows& a) {
  const FactorRows given = a;
  for (FactorRows::value_type& row : a) row.assign(row.size(), 0.0);
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (size_t k = 0; k < j; ++k) sum += a[i][k] * a[j][k];
      const double rest = given[i][j] - sum;
      if (j == i && !(rest > 0)) {
        for (size_t r = i; r < a.size(); ++r) {
          for (size_t c = r == i ? i : 0; c <= r; ++c) a[r][c] = given[r][c];
        }
        return static_cast<int32_t>(i + 1);
      }
      a[i][j] = j == i ? std::sqrt(rest) : rest / a[j][j];
    }
  }
  return 0;
}

// Multiplies by each reflection I - tau v v^T as a matrix.
void ReferenceQr(FactorRows& a, size_t columns, std::vector<double>& taus) {
  for (size_t k = 0; k < std::min(a.size(), columns); ++k) {
    double length = 0;
    for (size_t i = k + 1; i < a.size(); ++i) length = std::hypot(length, a[i][k]);
    if (length == 0) continue;
    const double first = a[k][k],
                 beta = first < 0 || std::signbit(first) ? std::hypot(first, length) : -std::hypot(first, length);
    taus[k] = (beta - first) / beta;
    std::vector<double> v(a.size(), 0.0);
    v[k] = 1;
    for (size_t i = k + 1; i < a.size(); ++i) v[i] = a[i][k] / (first - beta);
    for (size_t j = k + 1; j < columns; ++j) {
      double sum = 0;
      for (size_t i = k; i < a.size(); ++i) sum += v[i] * a[i][j];
      for (size_t i = k; i < a.size(); ++i) a[i][j] -= taus[k] * sum * v[i];
    }
    a[k][k] = beta;
    for (size_t i = k + 1; i < a.size(); ++i) a[i][k] = v[i];
  }
}

// Subtracts the outer product of a block's columns with its inverse from the whole rest, of a matrix that has both
// triangles (Bunch and Kaufman, algorithm A).
int32_t ReferenceLdl(FactorRows& a, int32_t* pivots) {
  const size_t size = a.size();
  const double alpha = (1 + std::sqrt(17.0)) / 8;
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j < i; ++j) a[j][i] = a[i][j];
  }
  const auto exchange = [&](size_t from, size_t p, size_t q) {
    for (size_t i = from; i < size; ++i) std::swap(a[i][p], a[i][q]);
    for (size_t i = from; i < size; ++i) std::swap(a[p][i], a[q][i]);
  };
  const auto largest_of = [&](size_t column, size_t from) {
    size_t best = size;
    for (size_t i = from; i < size; ++i) {
      const double size_of_best = best == size ? 0 : std::fabs(a[best][column]);
      if (i != column && std::fabs(a[i][column]) > size_of_best) best = i;
    }
    return best;
  };
  int32_t info = 0;
  for (size_t k = 0; k < size;) {
    const size_t r = largest_of(k, k);
    const double lambda = r < size ? std::fabs(a[r][k]) : 0, diagonal = std::fabs(a[k][k]);
    size_t row = k, width = 1;
    if (diagonal < alpha * lambda) {
      const size_t other = largest_of(r, k);
      const double sigma = other < size ? std::fabs(a[other][r]) : 0;
      if (!(diagonal >= alpha * lambda * (lambda / sigma))) {
        row = r;
        width = std::fabs(a[r][r]) >= alpha * sigma ? 1 : 2;
      }
    }
    exchange(k, k + width - 1, row);
    for (size_t w = 0; w < width; ++w) pivots[k + w] = static_cast<int32_t>(row + 1) * (width == 2 ? -1 : 1);
    const FactorRows before = a;
    const double p = a[k][k], q = width == 2 ? a[k + 1][k] : 0, s = width == 2 ? a[k + 1][k + 1] : 1;
    const bool empty = width == 1 && p == 0 && lambda == 0;
    if (empty && info == 0) info = static_cast<int32_t>(k + 1);
    // Returns element w of the row of L: (x, y) times the inverse of the block.
    const auto of_l = [&](size_t i, size_t w) {
      if (width == 1) return before[i][k] / p;
      const double factor = 1 / ((p / q) * (s / q) - 1) / q, x = before[i][k], y = before[i][k + 1];
      return w == 0 ? factor * ((s / q) * x - y) : factor * ((p / q) * y - x);
    };
    for (size_t i = k + width; i < size && !empty; ++i) {
      for (size_t j = k + width; j < size; ++j) {
        const size_t low = std::min(i, j), high = std::max(i, j);
        double product = 0;
        for (size_t w = 0; w < width; ++w) product += before[high][k + w] * of_l(low, w);
        a[i][j] -= product;
      }
      for (size_t w = 0; w < width; ++w) a[i][k + w] = of_l(i, w);
    }
    k += width;
  }
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = i + 1; j < size; ++j) a[i][j] = 0;
  }
  return info;
}

Status MatrixFactorsReference(const MatrixFactors& op, const Context&, Tensor<const double, kAnyRank> a,
                              Tensor<double, kAnyRank> factors, Tensor<double, kAnyRank> scales,
                              Tensor<int32_t, kAnyRank> pivots, Tensor<int32_t, kAnyRank> info) {
  const auto rows = static_cast<size_t>(a.dim(a.rank() - 2)), columns = static_cast<size_t>(a.dim(a.rank() - 1));
  const size_t least = std::min(rows, columns);
  for (int64_t n = 0; n < info.size(); ++n) {
    info[n] = 0;
    if (least == 0) continue;
    const int64_t first = n * static_cast<int64_t>(rows * columns), first_pivot = n * static_cast<int64_t>(least);
    FactorRows matrix(rows, std::vector<double>(columns));
    for (size_t e = 0; e < rows * columns; ++e) {
      matrix[e / columns][e % columns] = a[first + static_cast<int64_t>(e)];
    }
    std::vector<double> taus(least, 0.0);
    std::vector<int32_t> exchanged(least);
    for (size_t k = 0; k < least; ++k) exchanged[k] = static_cast<int32_t>(k + 1);
    if (op.method == MatrixFactors::Method::kQr) {
      ReferenceQr(matrix, columns, taus);
    } else if (op.method == MatrixFactors::Method::kCholesky) {
      info[n] = ReferenceCholesky(matrix);
    } else if (op.method == MatrixFactors::Method::kLdl) {
      info[n] = ReferenceLdl(matrix, exchanged.data());
    } else {
      info[n] = ReferenceLu(matrix, columns, exchanged.data());
      for (size_t k = 0; k < least; ++k)
        taus[k] = exchanged[k] == static_cast<int32_t>(k + 1) ? matrix[k][k] : -matrix[k][k];
    }
    for (size_t e = 0; e < rows * columns; ++e) {
      factors[first + static_cast<int64_t>(e)] = matrix[e / columns][e % columns];
    }
    for (size_t k = 0; k < least; ++k) {
      scales[first_pivot + static_cast<int64_t>(k)] = taus[k];
      pivots[first_pivot + static_cast<int64_t>(k)] = exchanged[k];
    }
  }
  return op.CheckFactors(a.shape(), info.data());
}
POLYOP_REFERENCE_KERNEL(MatrixFactors, MatrixFactorsReference);

}  // namespace
}  // namespace polyop
