// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "core/operator.h"
#include "ops/linalg/errors.h"

namespace polyop {

/// The eigenvalues and eigenvectors of each square matrix. Complex numbers are pairs in a last dimension of 2.
struct Eig {
  int64_t vectors = 1;
  int64_t check_errors = 0;

  static constexpr const char* kName = "eig";
  static constexpr Signature kSignature =
      "a: T[...B, N, N] -> values: T[...B, N, 2], basis: T[...B, N, vectors * N, 2]";
  static constexpr NodeName kNodes[] = {"polyop::Eig"};
  static constexpr std::tuple kAttributes = {
      Attr("vectors", &Eig::vectors, "0: computes the eigenvalues only, and `basis` is empty").Between(0, 1),
      Attr("check_errors", &Eig::check_errors, "1: NaN or infinity in `a` is an error of the CPU kernel").Between(0, 1),
  };
  static constexpr Doc kDoc = {
      .summary = "Computes the eigenvalues and eigenvectors of the square matrices in the last two dimensions.",
      .semantics =
          R"(Real matrices have complex eigenvalues: the last dimension of the outputs holds real and imaginary parts.
          Conjugate eigenvalues are adjacent, first the one with a positive imaginary part. Otherwise the order is that
          in which the QR algorithm leaves them on the diagonal, as in LAPACK's `geev`: matrices are balanced, reduced
          to Hessenberg form, and iterated with double shifts; those of more than 75 rows with many shifts and early
          deflation. The columns of `basis` are the eigenvectors, with length
          1. The first of the elements with the largest magnitude in an eigenvector is real and positive; elements count
          as equal if they differ by less than a thousandth. All is computed in double precision. A matrix that contains
          NaN or infinity gives NaN.)",
      .source = "`torch.linalg.eig`, `torch.linalg.eigvals`",
      .differences = R"(LAPACK also scales complex eigenvectors so that their largest element is real, but real
          eigenvectors have the sign that it happens to compute. In float32 it computes in single precision, where rounding
          errors may change the order; for matrices of more than 75 rows other algorithms do.)",
      .not_portable = "ONNX has no operator for eigenvalues.",
  };

  /// Returns PyTorch's error if the attributes require one and an input is not finite.
  template <class T>
  Status CheckFinite(const T* a, int64_t count) const {
    if (check_errors == 0 || std::all_of(a, a + count, [](T x) { return std::isfinite(x); })) return Status::Ok();
    return InvalidArgument("torch.linalg.eig: input tensor should not contain infs or NaNs.");
  }

  /// Returns PyTorch's error for the first matrix whose values are NaN, if the attributes require one. Each matrix has
  /// `count` values.
  template <class T>
  Status CheckConverged(const Shape& shape, const T* values, int64_t count) const {
    if (check_errors == 0 || count == 0) return Status::Ok();
    return linalg::CheckMatrices("linalg.eig", shape, [&](int64_t n) -> std::string {
      if (!std::isnan(values[n * count])) return "";
      return "The algorithm failed to converge because "
             "the input matrix is ill-conditioned or has too many repeated eigenvalues (error code: 1).";
    });
  }
};

}  // namespace polyop
