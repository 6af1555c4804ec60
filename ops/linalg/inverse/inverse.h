// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// The inverse of each square matrix.
struct Inverse {
  int64_t check_errors = 0;

  static constexpr const char* kName = "inverse";
  static constexpr Signature kSignature = "input: T[...B, M, M] -> output: T[...B, M, M]";
  static constexpr NodeName kNodes[] = {"polyop::InverseTRT", "::InverseTRT"};
  static constexpr std::tuple kAttributes = {
      Attr("check_errors", &Inverse::check_errors,
           "1: a matrix with a pivot of exactly 0 is an error of the CPU kernel")
          .Between(0, 1),
  };
  static constexpr Doc kDoc = {
      .summary = "Computes the inverse of the matrices in the last two dimensions.",
      .semantics = R"(Gauss-Jordan elimination with row pivoting, in double precision, of the matrix whose rows and
          columns are first scaled by powers of two so that their largest magnitudes are near 1. A matrix that is
          singular to double precision, or that contains NaN or infinity, gives a matrix of NaN; other matrices of
          the batch are not affected. Values that overflow the type become infinite.)",
      .source = "`torch.linalg.inv`; InverseTRT of BEVFormer_tensorrt",
      .differences = "torch computes in the type of the input.",
      .not_portable = "ONNX has no operator for matrix inverses or linear equations.",
  };
};

}  // namespace polyop
