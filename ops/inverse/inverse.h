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
      .summary = "Computes the inverse of the matrices in the last two dimensions.",
      .semantics = R"(Gauss-Jordan elimination with row pivoting, in double precision, of the matrix whose rows and
          columns are first scaled by powers of two so that their largest magnitudes are near 1. A matrix that is
          singular to double precision, or that contains NaN or infinity, gives a matrix of NaN; other matrices of
          the batch are not affected. Values that overflow the type become infinite.)",
      .source = "`torch.linalg.inv`; InverseTRT of BEVFormer_tensorrt",
      .differences = "torch raises an error for a singular matrix on the CPU and computes in the type of the input.",
      .not_portable = "ONNX has no operator for matrix inverses or linear equations.",
  };
};

}  // namespace polyop
