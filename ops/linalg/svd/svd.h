// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "core/operator.h"
#include "ops/linalg/errors.h"

namespace polyop {

/// The singular value decomposition A = U S V^T of each matrix.
struct Svd {
  int64_t full_matrices = 0;
  int64_t vectors = 1;
  int64_t check_errors = 0;

  static constexpr const char* kName = "svd";
  static constexpr Signature kSignature =
      "a: T[...B, M, N] -> u: T[...B, M, vectors * (min(M, N) + full_matrices * (M - min(M, N)))], "
      "s: T[...B, min(M, N)], vh: T[...B, vectors * (min(M, N) + full_matrices * (N - min(M, N))), N]";
  static constexpr NodeName kNodes[] = {"polyop::SVD"};
  static constexpr std::tuple kAttributes = {
      Attr("full_matrices", &Svd::full_matrices,
           "1: `u` and `vh` are square; 0: they have only min(M, N) columns and rows")
          .Between(0, 1),
      Attr("vectors", &Svd::vectors, "0: computes the singular values only, and `u` and `vh` are empty").Between(0, 1),
      Attr("check_errors", &Svd::check_errors,
           "1: a matrix that contains NaN or infinity is an error of the CPU kernel")
          .Between(0, 1),
  };
  static constexpr Doc kDoc = {
      .summary = "Computes the singular value decomposition of the matrices in the last two dimensions.",
      .semantics = R"(The singular values are in descending order. The columns of `u` and the rows of `vh` are
          orthonormal, and u diag(s) vh is the matrix. The first of the elements with the largest magnitude in a column
          of `u` is positive, and in a row of `vh` that has no singular value; elements count as equal if they differ by
          less than a thousandth. Vectors of equal singular values, and those without one, are any orthonormal basis.
          All is computed in double precision, by one-sided Jacobi rotations, so that small singular values are as exact
          as large ones. A matrix that contains NaN or infinity gives NaN.)",
      .source = "`torch.linalg.svd`, `torch.linalg.svdvals`",
      .differences = "The signs of torch's vectors are those that LAPACK happens to compute.",
      .not_portable = "ONNX has no operator for singular values.",
  };

  /// Returns PyTorch's error for the first matrix whose values are NaN, if the attributes require one. Each matrix has
  /// `count` values.
  template <class T>
  Status CheckConverged(const Shape& shape, const T* s, int64_t count) const {
    if (check_errors == 0 || count == 0) return Status::Ok();
    return linalg::CheckMatrices("linalg.svd", shape, [&](int64_t n) -> std::string {
      if (!std::isnan(s[n * count])) return "";
      return "The algorithm failed to converge because "
             "the input matrix contained non-finite values.";
    });
  }
};

}  // namespace polyop
