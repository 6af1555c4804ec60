// SPDX-License-Identifier: Apache-2.0
// The error for singular matrices, shared by kernel and reference.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/tensor.h"
#include "ops/linalg/elimination.h"
#include "ops/linalg/errors.h"
#include "ops/linalg/inverse/inverse.h"

namespace polyop {

template <class T>
double AsDouble(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return ToFloat(x);
  }
}

/// Returns PyTorch's error for the first matrix whose elimination finds a pivot of 0, if the attributes require one.
/// Matrices that are singular by rounding errors only, or that contain NaN or infinity, have an inverse of NaN.
template <class T>
Status CheckInverse(const Inverse& op, const Tensor<const T, kAnyRank>& input, const Tensor<T, kAnyRank>& output) {
  if (op.check_errors == 0 || output.size() == 0) return Status::Ok();
  const int64_t size = input.dim(input.rank() - 1), area = size * size;
  std::vector<double> matrix;
  std::vector<int32_t> pivots;
  return linalg::CheckMatrices("linalg.inv", input.shape(), [&](int64_t n) -> std::string {
    if (!std::isnan(AsDouble(output[n * area]))) return "";
    matrix.assign(static_cast<size_t>(area), 0);
    pivots.assign(static_cast<size_t>(size), 0);
    for (int64_t e = 0; e < area; ++e) {
      const double element = AsDouble(input[n * area + e]);
      if (!std::isfinite(element)) return "";
      matrix[static_cast<size_t>(e)] = element;
    }
    const int32_t info = linalg::FactorLu(matrix.data(), size, size, size, pivots.data());
    return info == 0 ? "" : linalg::NoInverse(info);
  });
}

}  // namespace polyop
