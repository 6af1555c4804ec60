// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/linalg/errors.h"

namespace polyop {

/// The factors of each matrix: LU, Cholesky, QR or LDL.
struct MatrixFactors {
  enum class Method { kLu, kCholesky, kQr, kLdl };
  Method method = Method::kLu;
  int64_t check_errors = 0;

  static constexpr const char* kName = "matrix_factors";
  static constexpr Signature kSignature =
      "a: T[...B, M, N] -> factors: T[...B, M, N], scales: T[...B, min(M, N)], pivots: i32[...B, min(M, N)], "
      "info: i32[...B]";
  static constexpr NodeName kNodes[] = {"polyop::MatrixFactors"};
  static constexpr std::tuple kAttributes = {
      Attr("method", &MatrixFactors::method,
           R"(lu: A = P L U with row pivoting; cholesky: A = L L^T for a symmetric positive definite matrix, whose lower
           triangle is read; qr: A = Q R by Householder reflections; ldl: A = L D L^T with Bunch's and Kaufman's pivoting
           for a symmetric matrix, whose lower triangle is read)")
          .OneOf("lu", "cholesky", "qr", "ldl"),
      Attr("check_errors", &MatrixFactors::check_errors,
           R"(1: an error of the CPU kernel, if `info` is not 0 for a matrix; on a GPU the elements of its Cholesky
           factor are NaN)")
          .Between(0, 1),
  };
  static constexpr Doc kDoc = {
      .summary = "Factors the matrices in the last two dimensions: LU, Cholesky, QR or LDL.",
      .semantics = R"(lu: `factors` has U and, below its diagonal, L without its unit diagonal. `pivots` has the rows,
          counted from 1, that were exchanged with rows 1, 2, …; `scales` has the diagonal of U, each element times -1 if
          its row was exchanged, so that their product is the determinant; `info` has the number of the first pivot that
          is 0, or 0.
          cholesky: `factors` has L; `info` the order of the first leading minor that is not positive, where the
          computation ends, or 0. qr: `factors` has R and, below its diagonal, the vectors of the reflections
          I - scale v v^T, whose first element is 1; `scales` has their scales. ldl: `factors` has D, whose blocks have
          one or two rows, and below them L without its unit diagonal. `pivots` has the row, from 1, that was exchanged
          with each row; for a block of two rows both are the negative number of the row that was exchanged with the
          second one. `info` is the number of the first block that is 0, or 0. Unused pivots are 1, 2, …; unused
          scales are 0. All is computed in double precision.)",
      .source = R"(`torch.linalg.lu_factor_ex`, `torch.linalg.cholesky_ex`, `torch.geqrf`,
          `torch.linalg.ldl_factor_ex`)",
      .differences = "torch computes in the type of the input.",
      .not_portable = "ONNX has no operator for factorizations.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape& a = inputs[0].shape;
    const bool symmetric = method == Method::kCholesky || method == Method::kLdl;
    if (!symmetric || a[a.rank() - 2] == a[a.rank() - 1]) return Status::Ok();
    return InvalidArgument("'a': expected square matrices for the method ", method == Method::kLdl ? "ldl" : "cholesky",
                           ", got shape ", ToString(a));
  }

  /// Returns PyTorch's error for the first matrix without factors, if the attributes require one.
  Status CheckFactors(const Shape& shape, const int32_t* info) const {
    if (check_errors == 0) return Status::Ok();
    const bool is_lu = method == Method::kLu, is_ldl = method == Method::kLdl;
    const char* const function = is_lu    ? "torch.linalg.lu_factor"
                                 : is_ldl ? "torch.linalg.ldl_factor"
                                          : "linalg.cholesky";
    return linalg::CheckInfo(function, shape, info, [&](int32_t row) {
      if (is_ldl) return Concat("D[", row, ",", row, "] is zero: the equations have no solution.");
      if (is_lu) {
        return Concat("U[", row, ",", row, "] is zero and using it on lu_solve would result in a division by ",
                      "zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or ",
                      "linalg.lu_factor_ex(A, pivot)");
      }
      return Concat("The factorization could not be completed because the input is not positive-definite (the leading ",
                    "minor of order ", row, " is not positive-definite).");
    });
  }
};

}  // namespace polyop
