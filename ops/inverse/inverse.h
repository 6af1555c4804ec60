#pragma once

#include "core/operator.h"

namespace polyop {

/// The inverse of each square matrix.
struct Inverse {
  static constexpr const char* kName = "inverse";
  static constexpr Signature kSignature = "input: T[...B, M, M] -> output: T[...B, M, M]";
  static constexpr NodeName kNodes[] = {"polyop::InverseTRT", "::InverseTRT"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "The inverse of the matrices in the last two dimensions.",
      .semantics =
          "Gauss-Jordan elimination with pivots by row, in double precision, of the matrix whose rows and columns are "
          "first scaled by powers of two to a greatest element near 1. A matrix that is singular to double precision, "
          "or has NaN or infinity in it, gives NaN everywhere; the others are not touched by it. What overflows the "
          "type is infinite.",
      .source = "`torch.linalg.inv`; InverseTRT of BEVFormer_tensorrt",
      .differences = "torch raises an error for a singular matrix, on the CPU, and computes in the type of the input.",
      .not_portable = "ONNX has no operator for the inverse or for linear equations.",
  };
};

}  // namespace polyop
