// SPDX-License-Identifier: Apache-2.0
// The computation for one matrix, which CPU and GPU share.
#pragma once

#include <algorithm>

#include "core/host_device.h"
#include "core/tensor.h"
#include "ops/linalg/householder.h"
#include "ops/linalg/matrices.h"
#include "ops/linalg/qr/qr.h"

namespace polyop {

/// The matrices of a call.
template <class T>
struct OrthogonalFactors {
  int64_t rows, columns, count, basis;  // `basis` is the number of columns of q
  const T* from;
  T *q, *r;

  OrthogonalFactors(const Tensor<const T, kAnyRank>& a, const Tensor<T, kAnyRank>& to_q,
                    const Tensor<T, kAnyRank>& to_r)
      : rows(a.dim(a.rank() - 2)),
        columns(a.dim(a.rank() - 1)),
        count(linalg::CountMatrices(a.shape())),
        basis(to_q.dim(to_q.rank() - 1)),
        from(a.data()),
        q(to_q.data()),
        r(to_r.data()) {}

  int64_t smaller() const { return std::min(rows, columns); }
  /// The number of doubles that Decompose's `work` must have space for.
  int64_t WorkSize() const { return rows * columns + smaller() + rows; }
  double Operations() const {
    return static_cast<double>(rows) * static_cast<double>(smaller()) * static_cast<double>(columns + basis);
  }

  POLYOP_HD void Decompose(int64_t n, double* work) const {
    const int64_t least = std::min(rows, columns);
    double *const taus = work + rows * columns, *const column = taus + least;
    const T* const a = from + n * rows * columns;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) work[j * rows + i] = static_cast<double>(a[i * columns + j]);
    }
    linalg::FactorQr(work, columns, rows, taus);
    for (int64_t k = 0; k < basis; ++k) {
      linalg::ColumnOfQ(work, least, rows, taus, k, column);
      for (int64_t i = 0; i < rows; ++i) q[(n * rows + i) * basis + k] = static_cast<T>(column[i]);
    }
    StoreTriangle(n, work);
  }

  /// Stores the triangle of the factored matrix, whose columns are stored one after the other.
  POLYOP_HD void StoreTriangle(int64_t n, const double* work) const {
    for (int64_t i = 0; i < basis; ++i) {
      T* const to = r + (n * basis + i) * columns;
      for (int64_t j = 0; j < columns; ++j) to[j] = static_cast<T>(j < i ? 0 : work[j * rows + i]);
    }
  }
};

}  // namespace polyop
