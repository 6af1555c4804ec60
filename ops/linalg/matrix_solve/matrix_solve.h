// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/linalg/errors.h"

namespace polyop {

/// The solution of linear equations, with any matrix or with its factors.
struct MatrixSolve {
  enum class Method { kGeneral, kLower, kUpper, kLu, kLdl, kCholesky };
  enum class Raises { kNothing, kSolve, kInv };
  Method method = Method::kGeneral;
  int64_t transpose = 0;
  int64_t unit = 0;
  Raises raises = Raises::kNothing;

  static constexpr const char* kName = "matrix_solve";
  static constexpr Signature kSignature =
      "a: T[...B, N, N], b: T[...B, N, K], pivots?: i32[...P] -> x: T[...B, N, K], info: i32[...B]";
  static constexpr NodeName kNodes[] = {"polyop::MatrixSolve"};
  static constexpr std::tuple kAttributes = {
      Attr("method", &MatrixSolve::method,
           R"(general: any matrix, by elimination with row pivoting; lower, upper: the triangle of this name of `a`,
           the only elements that are read; lu: `a` and `pivots` are the factors P L U of the matrix;
           ldl: they are its factors L D L^T; cholesky: the lower triangle of `a` is the factor L of L L^T)")
          .OneOf("general", "lower", "upper", "lu", "ldl", "cholesky"),
      Attr("transpose", &MatrixSolve::transpose, "1: solves A^T x = b instead of A x = b").Between(0, 1),
      Attr("unit", &MatrixSolve::unit, "1: the diagonal of a triangular matrix is not read, and is 1").Between(0, 1),
      Attr("raises", &MatrixSolve::raises,
           "which function's error a singular matrix gives on the CPU: that of torch.linalg.solve or of "
           "torch.linalg.inv")
          .OneOf("nothing", "solve", "inv"),
  };
  static constexpr Doc kDoc = {
      .summary = "Solves the equations A x = b of each matrix and its right sides, the columns of `b`.",
      .semantics = R"(`pivots` is for the methods lu and ldl only, where it has the shape of `a` without its last
          dimension, as MatrixFactors returns it. For lu it may have fewer elements in the last dimension. A pivot that is no row of the matrix
          exchanges nothing. general: for a singular matrix `info` is the number of the first pivot that is 0, from 1,
          and the solution is NaN. In the other methods `info` is 0, and a 0 on the diagonal gives infinities and NaN.
          All is computed in double precision.)",
      .source =
          "`torch.linalg.solve_ex`, `torch.linalg.solve_triangular`, `torch.linalg.lu_solve`, "
          "`torch.linalg.ldl_solve`, `torch.cholesky_solve`",
      .differences = "torch computes in the type of the input.",
      .not_portable = "ONNX has no operator for linear equations.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape& a = inputs[0].shape;
    const bool present = inputs.size() > 2 && inputs[2].present, is_ldl = method == Method::kLdl;
    if (present != (method == Method::kLu || is_ldl)) {
      return InvalidArgument("'pivots': expected ", present  ? "none, except for the methods lu and ldl"
                                                    : is_ldl ? "them for the method ldl"
                                                             : "them for the method lu");
    }
    if (!present) return Status::Ok();
    const Shape& pivots = inputs[2].shape;
    bool matches = pivots.rank() == a.rank() - 1;
    for (int d = 0; matches && d < pivots.rank(); ++d) {
      matches = d + 1 < pivots.rank() ? pivots[d] == a[d] : (is_ldl ? pivots[d] == a[d] : pivots[d] <= a[d]);
    }
    if (matches) return Status::Ok();
    return InvalidArgument("'pivots': expected the shape of 'a' without its last dimension, got ", ToString(pivots),
                           " for ", ToString(a));
  }

  /// Returns the error that the attribute `raises` names, for the first matrix that is singular.
  Status CheckSingular(const Shape& shape, const int32_t* info) const {
    if (raises == Raises::kNothing) return Status::Ok();
    const bool inverse = raises == Raises::kInv;
    return linalg::CheckInfo(inverse ? "linalg.inv" : "torch.linalg.solve", shape, info, [&](int32_t row) {
      return inverse ? linalg::NoInverse(row) : "The solver failed because the input matrix is singular.";
    });
  }
};

}  // namespace polyop
