// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "core/operator.h"
#include "ops/linalg/errors.h"

namespace polyop {

/// The eigenvalues and eigenvectors of each symmetric matrix.
struct Eigh {
  int64_t upper = 0;
  int64_t vectors = 1;
  int64_t check_errors = 0;

  static constexpr const char* kName = "eigh";
  static constexpr Signature kSignature = "a: T[...B, N, N] -> values: T[...B, N], basis: T[...B, N, vectors * N]";
  static constexpr NodeName kNodes[] = {"polyop::Eigh"};
  static constexpr std::tuple kAttributes = {
      Attr("upper", &Eigh::upper, "1: the upper triangle of `a` is read; 0: the lower one").Between(0, 1),
      Attr("vectors", &Eigh::vectors, "0: computes the eigenvalues only, and `basis` is empty").Between(0, 1),
      Attr("check_errors", &Eigh::check_errors,
           "1: a matrix of several elements that contains NaN or infinity is an error of the CPU kernel")
          .Between(0, 1),
  };
  static constexpr Doc kDoc = {
      .summary = "Computes the eigenvalues and eigenvectors of the symmetric matrices in the last two dimensions.",
      .semantics =
          R"(The eigenvalues are in ascending order. The columns of `basis` are the eigenvectors, with length 1.
          The first of the elements with the largest magnitude in an eigenvector is positive; elements count as equal if
          they differ by less than a thousandth. Eigenvectors of equal eigenvalues are any orthonormal basis. All is
          computed in double precision; the CPU kernel rounds the rest of a large matrix of float to float while it
          reduces it to a tridiagonal one. A matrix that contains NaN or infinity gives NaN.)",
      .source = "`torch.linalg.eigh`, `torch.linalg.eigvalsh`",
      .differences = "The signs of torch's eigenvectors are those that LAPACK happens to compute.",
      .not_portable = "ONNX has no operator for eigenvalues.",
  };

  /// Returns PyTorch's error for the first matrix whose values are NaN, if the attributes require one. Each matrix has
  /// `count` values. PyTorch computes matrices of one element without LAPACK, and raises no error for them.
  template <class T>
  Status CheckConverged(const Shape& shape, const T* values, int64_t count) const {
    if (check_errors == 0 || count <= 1) return Status::Ok();
    return linalg::CheckMatrices("linalg.eigh", shape, [&](int64_t n) -> std::string {
      if (!std::isnan(values[n * count])) return "";
      return "The algorithm failed to converge because "
             "the input matrix is ill-conditioned or has too many repeated eigenvalues (error code: 1).";
    });
  }
};

}  // namespace polyop
