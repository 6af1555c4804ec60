// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// The QR factorization of each matrix, with the orthogonal factor.
struct Qr {
  int64_t complete = 0;

  static constexpr const char* kName = "qr";
  static constexpr Signature kSignature =
      "a: T[...B, M, N] -> q: T[...B, M, min(M, N) + complete * (M - min(M, N))], "
      "r: T[...B, min(M, N) + complete * (M - min(M, N)), N]";
  static constexpr NodeName kNodes[] = {"polyop::QR"};
  static constexpr std::tuple kAttributes = {
      Attr("complete", &Qr::complete, "1: `q` is square; 0: it has only min(M, N) columns").Between(0, 1),
  };
  static constexpr Doc kDoc = {
      .summary = "Factors the matrices in the last two dimensions into orthogonal and upper triangular ones.",
      .semantics = R"(A = q r, where the columns of `q` are orthonormal. Both are computed by Householder reflections,
          with the signs of LAPACK: each diagonal element of `r` that a reflection computes has the sign opposite to
          that of the element that it replaces. All is computed in double precision.)",
      .source = "`torch.linalg.qr`",
      .differences = "torch computes in the type of the input.",
      .not_portable = "ONNX has no operator for factorizations.",
  };
};

}  // namespace polyop
