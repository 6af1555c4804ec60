// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "ops/linalg/inverse/inverse.h"
#include "ops/linalg/inverse/inverse_errors.h"
#include "ops/linalg/inverse/inverse_rule.h"

namespace polyop {
namespace {

using Rows = std::vector<std::vector<double>>;

// Solves [A | 1] by elimination with full pivoting. Returns false if A is singular.
bool Solve(Rows& rows, int64_t size) {
  std::vector<size_t> column(static_cast<size_t>(size));  // the columns of A in the order of elimination
  std::iota(column.begin(), column.end(), size_t{0});
  const auto n = static_cast<size_t>(size);
  for (size_t k = 0; k < n; ++k) {
    size_t row = k, at = k;
    for (size_t i = k; i < n; ++i) {
      for (size_t j = k; j < n; ++j) {
        if (std::isnan(rows[i][column[j]])) return false;
        if (std::fabs(rows[i][column[j]]) > std::fabs(rows[row][column[at]])) row = i, at = j;
      }
    }
    std::swap(rows[k], rows[row]);
    std::swap(column[k], column[at]);
    const double pivot = rows[k][column[k]];
    if (!IsPivot(pivot, size)) return false;
    for (double& value : rows[k]) value /= pivot;
    for (size_t i = 0; i < n; ++i) {
      const double factor = rows[i][column[k]];
      for (size_t j = 0; j < 2 * n && i != k; ++j) rows[i][j] -= factor * rows[k][j];
    }
  }
  Rows sorted(n);
  for (size_t k = 0; k < n; ++k) sorted[column[k]] = rows[k];
  rows = sorted;
  return true;
}

Status InverseReference(const Inverse& op, const Context&, Tensor<const double, kAnyRank> input,
                        Tensor<double, kAnyRank> output) {
  const int64_t size = input.dim(input.rank() - 1);
  const auto n = static_cast<size_t>(size);
  for (int64_t first = 0; first < input.size(); first += size * size) {
    Rows rows(n, std::vector<double>(2 * n));
    std::vector<double> row_scale(n, 0), column_scale(n, 0);
    const auto at = [&](size_t i, size_t j) { return input[first + static_cast<int64_t>(i * n + j)]; };
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) row_scale[i] = LargerMagnitude(row_scale[i], at(i, j));
      row_scale[i] = InverseScale(row_scale[i]);
    }
    for (size_t j = 0; j < n; ++j) {
      for (size_t i = 0; i < n; ++i) column_scale[j] = LargerMagnitude(column_scale[j], at(i, j) * row_scale[i]);
      column_scale[j] = InverseScale(column_scale[j]);
    }
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) rows[i][j] = at(i, j) * row_scale[i] * column_scale[j];
      rows[i][n + i] = 1;
    }
    const bool solved = Solve(rows, size);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        output[first + static_cast<int64_t>(i * n + j)] =
            solved ? rows[i][n + j] * column_scale[i] * row_scale[j] : NAN;
      }
    }
  }
  return CheckInverse(op, input, output);
}
POLYOP_REFERENCE_KERNEL(Inverse, InverseReference);

}  // namespace
}  // namespace polyop
