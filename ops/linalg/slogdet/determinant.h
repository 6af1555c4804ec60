// SPDX-License-Identifier: Apache-2.0
// The computation for one matrix, which CPU and GPU share.
#pragma once

#include <cmath>

#include "core/host_device.h"
#include "core/tensor.h"
#include "ops/linalg/elimination.h"

namespace polyop {

/// The matrices of a call.
template <class T>
struct MatricesWithDeterminants {
  int64_t size, count;
  const T* from;
  T *signs, *logarithms;

  MatricesWithDeterminants(const Tensor<const T, kAnyRank>& a, const Tensor<T, kAnyRank>& sign,
                           const Tensor<T, kAnyRank>& logabsdet)
      : size(a.dim(a.rank() - 1)),
        count(sign.size()),
        from(a.data()),
        signs(sign.data()),
        logarithms(logabsdet.data()) {}

  double Operations() const {
    return static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size) / 3;
  }

  /// Writes the determinant of the factors that FactorLu computed. Rows are `stride` elements apart.
  POLYOP_HD void Write(int64_t n, const double* factors, int64_t stride, const int32_t* pivots) const {
    double sign = 1, logarithm = 0;
    for (int64_t k = 0; k < size; ++k) {
      const double u = factors[k * (stride + 1)], of_exchange = pivots[k] == k + 1 ? 1 : -1;
      sign *= u > 0 ? of_exchange : u < 0 ? -of_exchange : 0;
      logarithm += std::log(std::fabs(u));
    }
    signs[n] = static_cast<T>(sign);
    logarithms[n] = static_cast<T>(logarithm);
  }

  /// `work` and `pivots` have space for a matrix and a row.
  POLYOP_HD void Compute(int64_t n, double* work, int32_t* pivots) const {
    for (int64_t e = 0; e < size * size; ++e) work[e] = static_cast<double>(from[n * size * size + e]);
    linalg::FactorLu(work, size, size, size, pivots);
    Write(n, work, size, pivots);
  }
};

}  // namespace polyop
