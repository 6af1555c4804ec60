// SPDX-License-Identifier: Apache-2.0
// The computation for one matrix, which CPU and GPU share.
#pragma once

#include <algorithm>

#include "core/host_device.h"
#include "core/tensor.h"
#include "ops/linalg/eigh/eigh.h"
#include "ops/linalg/matrices.h"
#include "ops/linalg/symmetric_eigen.h"

namespace polyop {

/// The matrices of a call.
template <class T>
struct SymmetricMatrices {
  bool upper, with_vectors;
  int64_t size, count;
  const T* from;
  T *values, *basis;

  SymmetricMatrices(const Eigh& op, const Tensor<const T, kAnyRank>& a, const Tensor<T, kAnyRank>& to_values,
                    const Tensor<T, kAnyRank>& to_basis)
      : upper(op.upper != 0),
        with_vectors(op.vectors != 0),
        size(a.dim(a.rank() - 1)),
        count(linalg::CountMatrices(a.shape())),
        from(a.data()),
        values(to_values.data()),
        basis(to_basis.data()) {}

  /// The number of doubles that Decompose's `work` must have space for.
  int64_t WorkSize() const { return size * (2 * size + 3); }
  double Operations() const {
    return static_cast<double>(size) * static_cast<double>(size) *
           static_cast<double>(with_vectors ? 8 * size : 3 * size);
  }

  /// Returns element (i, j), i >= j, of the triangle that is read.
  POLYOP_HD double ElementOfTriangle(int64_t n, int64_t i, int64_t j) const {
    return static_cast<double>(from[n * size * size + (upper ? j * size + i : i * size + j)]);
  }

  POLYOP_HD void Read(int64_t n, double* to) const {
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j <= i; ++j) to[i * size + j] = to[j * size + i] = ElementOfTriangle(n, i, j);
    }
  }

  template <class Vectors = linalg::PlainVectors>
  POLYOP_HD void Decompose(int64_t n, double* work) const {
    const int64_t area = size * size;
    double *const rows = work + area, *const found = rows + area;
    Read(n, work);
    const bool finite = linalg::ScaleOf(work, area) > 0;
    const bool converged =
        finite && linalg::SymmetricEigen<Vectors>(work, size, found, with_vectors ? rows : nullptr, found + size);
    for (int64_t k = 0; k < size; ++k) {
      values[n * size + k] = static_cast<T>(converged ? found[k] : NAN);
      if (!with_vectors) continue;
      const double sign = converged ? linalg::SignOf(rows + k * size, size) : NAN;
      for (int64_t i = 0; i < size; ++i) {
        basis[n * area + i * size + k] = static_cast<T>(converged ? sign * rows[k * size + i] : NAN);
      }
    }
  }
};

}  // namespace polyop
