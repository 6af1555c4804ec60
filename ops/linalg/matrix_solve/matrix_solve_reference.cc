// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "ops/linalg/matrix_solve/matrix_solve.h"

namespace polyop {
namespace {

using EquationRows = std::vector<std::vector<double>>;

// Returns a matrix with zeros outside of a triangle, and ones on the diagonal if `unit`.
EquationRows TriangleOf(const EquationRows& a, bool upper, bool unit) {
  EquationRows triangle = a;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a.size(); ++j) {
      if (i == j && unit) triangle[i][j] = 1;
      if (i != j && (i < j) != upper) triangle[i][j] = 0;
    }
  }
  return triangle;
}

EquationRows TransposeOf(const EquationRows& a) {
  EquationRows result = a;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a.size(); ++j) result[i][j] = a[j][i];
  }
  return result;
}

// Solves T x = b for a triangular matrix by substitution: x[i] = (b[i] - sum of T[i][j] x[j]) / T[i][i].
void Substitute(const EquationRows& t, bool upper, EquationRows& b) {
  for (size_t n = 0; n < t.size(); ++n) {
    const size_t i = upper ? t.size() - 1 - n : n;
    for (size_t c = 0; c < b[i].size(); ++c) {
      double sum = 0;
      for (size_t j = upper ? i + 1 : 0; j < (upper ? t.size() : i); ++j) sum += t[i][j] * b[j][c];
      b[i][c] = (b[i][c] - sum) / t[i][i];
    }
  }
}

// Solves A x = b by elimination with row pivoting. Returns the number of the first pivot that is 0, or 0.
int32_t EliminateEquations(EquationRows a, EquationRows& b) {
  for (size_t k = 0; k < a.size(); ++k) {
    size_t best = k;
    for (size_t i = k + 1; i < a.size(); ++i) {
      if (std::fabs(a[i][k]) > std::fabs(a[best][k])) best = i;
    }
    if (a[best][k] == 0) {
      for (std::vector<double>& row : b) row.assign(row.size(), NAN);
      return static_cast<int32_t>(k + 1);
    }
    std::swap(a[k], a[best]);
    std::swap(b[k], b[best]);
    for (size_t i = k + 1; i < a.size(); ++i) {
      const double factor = a[i][k] / a[k][k];
      for (size_t j = k + 1; j < a.size(); ++j) a[i][j] -= factor * a[k][j];
      for (size_t c = 0; c < b[i].size(); ++c) b[i][c] -= factor * b[k][c];
    }
  }
  Substitute(a, true, b);
  return 0;
}

// Solves A x = b for A = M D M^T, M = P1 L1 P2 L2 …, where each factor has the column or the two columns of one block.
void SubstituteLdl(const EquationRows& a, const std::vector<int32_t>& pivots, EquationRows& b) {
  const size_t size = a.size();
  std::vector<std::pair<size_t, size_t>> forward, backward;  // first row and number of rows of each block
  for (size_t k = 0; k < size; k += forward.back().second) {
    forward.emplace_back(k, pivots[k] < 0 && k + 1 < size ? 2 : 1);
  }
  for (size_t end = size; end > 0; end -= backward.back().second) {
    const size_t width = pivots[end - 1] < 0 && end > 1 ? 2 : 1;
    backward.emplace_back(end - width, width);
  }
  const auto exchange = [&](size_t k, int32_t pivot) {
    const auto other = static_cast<size_t>(std::abs(int64_t{pivot}) - 1);
    if (other < size) std::swap(b[k], b[other]);
  };
  for (const auto& [k, width] : forward) {
    exchange(k + width - 1, pivots[k]);
    for (size_t c = 0; c < b[k].size(); ++c) {
      for (size_t i = k + width; i < size; ++i) {
        for (size_t w = 0; w < width; ++w) b[i][c] -= a[i][k + w] * b[k + w][c];
      }
      if (width == 1) {
        b[k][c] /= a[k][k];
        continue;
      }
      // Cramer's rule, divided by the square of the element outside of the diagonal
      const double q = a[k + 1][k], p = a[k][k] / q, s = a[k + 1][k + 1] / q, x = b[k][c] / q, y = b[k + 1][c] / q;
      b[k][c] = (s * x - y) / (p * s - 1);
      b[k + 1][c] = (p * y - x) / (p * s - 1);
    }
  }
  for (const auto& [k, width] : backward) {
    for (size_t w = 0; w < width; ++w) {
      for (size_t c = 0; c < b[k].size(); ++c) {
        for (size_t i = k + width; i < size; ++i) b[k + w][c] -= a[i][k + w] * b[i][c];
      }
    }
    exchange(k + width - 1, pivots[k + width - 1]);
  }
}

Status MatrixSolveReference(const MatrixSolve& op, const Context&, Tensor<const double, kAnyRank> a,
                            Tensor<const double, kAnyRank> b, std::optional<Tensor<const int32_t, kAnyRank>> pivots,
                            Tensor<double, kAnyRank> x, Tensor<int32_t, kAnyRank> info) {
  const auto size = static_cast<size_t>(a.dim(a.rank() - 1)), columns = static_cast<size_t>(b.dim(b.rank() - 1));
  const bool transpose = op.transpose != 0;
  const int64_t exchanges = pivots ? pivots->dim(pivots->rank() - 1) : 0;
  for (int64_t n = 0; n < info.size(); ++n) {
    info[n] = 0;
    if (size == 0) continue;
    EquationRows matrix(size, std::vector<double>(size)), right(size, std::vector<double>(columns));
    const auto first = n * static_cast<int64_t>(size * size), first_right = n * static_cast<int64_t>(size * columns);
    for (size_t e = 0; e < size * size; ++e) matrix[e / size][e % size] = a[first + static_cast<int64_t>(e)];
    for (size_t e = 0; e < size * columns; ++e) {
      right[e / columns][e % columns] = b[first_right + static_cast<int64_t>(e)];
    }
    const auto exchange = [&](int64_t k) {
      const auto other = static_cast<size_t>(int64_t{(*pivots)[n * exchanges + k]} - 1);
      if (other < size) std::swap(right[static_cast<size_t>(k)], right[other]);
    };
    const auto substitute = [&](bool upper, bool unit) {
      const EquationRows triangle = TriangleOf(matrix, upper, unit);
      Substitute(transpose ? TransposeOf(triangle) : triangle, upper != transpose, right);
    };
    switch (op.method) {
      case MatrixSolve::Method::kGeneral:
        info[n] = EliminateEquations(transpose ? TransposeOf(matrix) : matrix, right);
        break;
      case MatrixSolve::Method::kLower:
      case MatrixSolve::Method::kUpper: substitute(op.method == MatrixSolve::Method::kUpper, op.unit != 0); break;
      case MatrixSolve::Method::kCholesky: {
        const EquationRows factor = TriangleOf(matrix, false, false);
        Substitute(factor, false, right);
        Substitute(TransposeOf(factor), true, right);
        break;
      }
      case MatrixSolve::Method::kLdl: {
        const int32_t* const given = pivots->data() + n * exchanges;
        SubstituteLdl(matrix, {given, given + size}, right);
        break;
      }
      case MatrixSolve::Method::kLu:
        for (int64_t k = 0; k < exchanges && !transpose; ++k) exchange(k);
        substitute(transpose, !transpose);
        substitute(!transpose, transpose);
        for (int64_t k = exchanges; k-- > 0 && transpose;) exchange(k);
    }
    for (size_t e = 0; e < size * columns; ++e) {
      x[first_right + static_cast<int64_t>(e)] = right[e / columns][e % columns];
    }
  }
  return op.CheckSingular(a.shape(), info.data());
}
POLYOP_REFERENCE_KERNEL(MatrixSolve, MatrixSolveReference);

}  // namespace
}  // namespace polyop
