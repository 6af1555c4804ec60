// SPDX-License-Identifier: Apache-2.0
// The computation for one matrix, which CPU and GPU share.
#pragma once

#include <algorithm>
#include <optional>

#include "core/host_device.h"
#include "core/tensor.h"
#include "ops/linalg/elimination.h"
#include "ops/linalg/matrix_solve/matrix_solve.h"

namespace polyop {

/// The equations of a call.
template <class T>
struct EquationsToSolve {
  MatrixSolve::Method method;
  bool transpose, unit;
  int64_t size, columns, count, pivot_count;
  const T *from, *right;
  const int32_t* pivots;
  T* to;
  int32_t* info;

  EquationsToSolve(const MatrixSolve& op, const Tensor<const T, kAnyRank>& a, const Tensor<const T, kAnyRank>& b,
                   const std::optional<Tensor<const int32_t, kAnyRank>>& given, const Tensor<T, kAnyRank>& x,
                   const Tensor<int32_t, kAnyRank>& to_info)
      : method(op.method),
        transpose(op.transpose != 0),
        unit(op.unit != 0),
        size(a.dim(a.rank() - 1)),
        columns(b.dim(b.rank() - 1)),
        count(to_info.size()),
        pivot_count(given ? given->dim(given->rank() - 1) : 0),
        from(a.data()),
        right(b.data()),
        pivots(given ? given->data() : nullptr),
        to(x.data()),
        info(to_info.data()) {}

  /// The number of doubles, and of indices, that Solve's arguments must have space for.
  int64_t WorkSize() const { return size * (size + columns); }
  int64_t RowsSize() const { return method == MatrixSolve::Method::kGeneral ? size : 0; }
  double Operations() const {
    const bool general = method == MatrixSolve::Method::kGeneral;
    return static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(columns + (general ? size : 0));
  }

  POLYOP_HD void Solve(int64_t n, double* work, int32_t* rows) const {
    double* const b = work + size * size;
    const int32_t* exchanged = pivots + n * pivot_count;
    int64_t exchanges = pivot_count;
    const bool general = method == MatrixSolve::Method::kGeneral, transpose_first = general && transpose;
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < size; ++j) {
        work[transpose_first ? j * size + i : i * size + j] = static_cast<double>(from[(n * size + i) * size + j]);
      }
    }
    for (int64_t i = 0; i < size * columns; ++i) b[i] = static_cast<double>(right[n * size * columns + i]);
    info[n] = 0;
    if (general) {
      info[n] = linalg::FactorLu(work, size, size, size, rows);
      exchanged = rows;
      exchanges = size;
    }
    if (method == MatrixSolve::Method::kLdl) {
      linalg::SolveLdl(work, size, exchanged, b, columns);
    } else if (method == MatrixSolve::Method::kLower || method == MatrixSolve::Method::kUpper) {
      linalg::TriangularSolve({method == MatrixSolve::Method::kUpper, unit, transpose}, work, size, b, columns);
    } else if (method == MatrixSolve::Method::kCholesky) {
      linalg::TriangularSolve({false, false, false}, work, size, b, columns);
      linalg::TriangularSolve({false, false, true}, work, size, b, columns);
    } else if (info[n] != 0) {
      for (int64_t i = 0; i < size * columns; ++i) b[i] = NAN;
    } else if (transpose && !general) {
      linalg::TriangularSolve({true, false, true}, work, size, b, columns);
      linalg::TriangularSolve({false, true, true}, work, size, b, columns);
      linalg::ExchangeRows(exchanged, exchanges, true, b, size, columns);
    } else {
      linalg::ExchangeRows(exchanged, exchanges, false, b, size, columns);
      linalg::TriangularSolve({false, true, false}, work, size, b, columns);
      linalg::TriangularSolve({true, false, false}, work, size, b, columns);
    }
    for (int64_t i = 0; i < size * columns; ++i) to[n * size * columns + i] = static_cast<T>(b[i]);
  }
};

}  // namespace polyop
