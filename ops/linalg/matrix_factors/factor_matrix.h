// SPDX-License-Identifier: Apache-2.0
// The computation for one matrix, which CPU and GPU share.
#pragma once

#include <algorithm>

#include "core/host_device.h"
#include "core/tensor.h"
#include "ops/linalg/elimination.h"
#include "ops/linalg/householder.h"
#include "ops/linalg/matrix_factors/matrix_factors.h"

namespace polyop {

/// The matrices of a call.
template <class T>
struct MatricesToFactor {
  MatrixFactors::Method method;
  bool check_errors;
  int64_t rows, columns, count;
  const T* from;
  T *factors, *scales;
  int32_t *pivots, *info;

  MatricesToFactor(const MatrixFactors& op, const Tensor<const T, kAnyRank>& a, const Tensor<T, kAnyRank>& to_factors,
                   const Tensor<T, kAnyRank>& to_scales, const Tensor<int32_t, kAnyRank>& to_pivots,
                   const Tensor<int32_t, kAnyRank>& to_info)
      : method(op.method),
        check_errors(op.check_errors != 0),
        rows(a.dim(a.rank() - 2)),
        columns(a.dim(a.rank() - 1)),
        count(to_info.size()),
        from(a.data()),
        factors(to_factors.data()),
        scales(to_scales.data()),
        pivots(to_pivots.data()),
        info(to_info.data()) {}

  /// Returns what LU stores in `scales`: an element of the diagonal of U, negative if its row was exchanged.
  POLYOP_HD static double SignedPivot(double u, const int32_t* exchanged, int64_t k) {
    return exchanged[k] == k + 1 ? u : -u;
  }

  int64_t smaller() const { return std::min(rows, columns); }
  /// The number of doubles that Factor's `work` must have space for.
  int64_t WorkSize() const { return rows * columns + smaller(); }
  double Operations() const {
    return static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(smaller());
  }

  POLYOP_HD void Factor(int64_t n, double* work) const {
    const int64_t least = std::min(rows, columns);
    info[n] = 0;
    if (least == 0) return;
    const T* const a = from + n * rows * columns;
    T* const to = factors + n * rows * columns;
    int32_t* const to_pivots = pivots + n * least;
    double* const taus = work + rows * columns;
    const bool by_columns = method == MatrixFactors::Method::kQr;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        work[by_columns ? j * rows + i : i * columns + j] = static_cast<double>(a[i * columns + j]);
      }
    }
    for (int64_t k = 0; k < least; ++k) {
      taus[k] = 0;
      to_pivots[k] = static_cast<int32_t>(k + 1);
    }
    if (by_columns) {
      linalg::FactorQr(work, columns, rows, taus);
    } else if (method == MatrixFactors::Method::kCholesky) {
      linalg::ClearUpperTriangle(work, rows);
      info[n] = linalg::FactorCholesky(work, rows, rows, taus);
      for (int64_t e = 0; e < rows * rows && check_errors && info[n] != 0; ++e) work[e] = NAN;
      for (int64_t k = 0; k < least; ++k) taus[k] = 0;
    } else if (method == MatrixFactors::Method::kLdl) {
      info[n] = linalg::FactorLdl(work, rows, to_pivots);
    } else {
      info[n] = linalg::FactorLu(work, rows, columns, columns, to_pivots);
      for (int64_t k = 0; k < least; ++k) taus[k] = SignedPivot(work[k * (columns + 1)], to_pivots, k);
    }
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        to[i * columns + j] = static_cast<T>(work[by_columns ? j * rows + i : i * columns + j]);
      }
    }
    for (int64_t k = 0; k < least; ++k) scales[n * least + k] = static_cast<T>(taus[k]);
  }
};

}  // namespace polyop
