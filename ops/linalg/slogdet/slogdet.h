// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// The sign and the logarithm of each determinant.
struct Slogdet {
  static constexpr const char* kName = "slogdet";
  static constexpr Signature kSignature = "a: T[...B, M, M] -> sign: T[...B], logabsdet: T[...B]";
  static constexpr NodeName kNodes[] = {"polyop::SlogDet"};
  static constexpr std::tuple kAttributes = {};
  static constexpr Doc kDoc = {
      .summary = "Computes the sign and the natural logarithm of the magnitude of the matrices' determinants.",
      .semantics = R"(LU factors with row pivoting, in double precision. A singular matrix has the sign 0 and the
          logarithm -infinity. If a pivot is NaN, the sign is 0 and the logarithm NaN.)",
      .source = "`torch.linalg.slogdet`",
      .differences = "torch computes in the type of the input.",
      .not_portable = "ONNX has no operator for factorizations.",
  };
};

}  // namespace polyop
