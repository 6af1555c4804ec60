// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

#include "core/host_device.h"
#include "core/operator.h"

namespace polyop {

/// The distances of vectors: p-norms of their differences.
struct Cdist {
  float p = 2;
  int64_t condensed = 0;

  static constexpr const char* kName = "cdist";
  static constexpr Signature kSignature =
      "a: T[...B, M, D], b: T[...B, N, D] -> "
      "distances: T[...B, (1 - condensed) * M + condensed, (1 - condensed) * N + condensed * (M * (M - 1) / 2)]";
  static constexpr NodeName kNodes[] = {"polyop::CDist"};
  static constexpr std::tuple kAttributes = {
      Attr("p", &Cdist::p,
           "the norm of a difference: 0 the number of elements other than 0, infinity the largest absolute value, "
           "otherwise, from 0.01 on, the p-th root of the sum of the p-th powers of absolute values")
          .AtLeast(0)
          .MayBeInfinite(),
      Attr("condensed", &Cdist::condensed,
           "0: the distance of every row of `a` from every row of `b`; 1: of every row from the later rows, in a row: "
           "those of row 0, of row 1, …; rows of `a` are compared with rows of `b`, which should be the same tensor")
          .Between(0, 1),
  };
  static constexpr Doc kDoc = {
      .summary = "Computes the distances of all pairs of rows of two matrices, in any norm.",
      .semantics = R"(distances[m, n] is the p-norm of a[m] - b[n]. Differences are taken before they are squared, so
          that equal rows have the distance 0. Sums are in the type of the elements. NaN in a row makes its distances
          NaN, as do two infinities of one sign. Rows without elements have the distance 0.)",
      .source = "`torch.cdist`, `torch.nn.functional.pdist`",
      .differences = "torch.cdist computes many Euclidean distances as a product of matrices, which is less exact.",
  };

  /// The roots of smaller powers would consist of rounding errors.
  static constexpr float kMinPower = 0.01f;

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    if (p != 0 && p < kMinPower) {
      return InvalidArgument("attribute 'p': expected 0 or at least ", kMinPower, ", got ", p);
    }
    const Shape &a = inputs[0].shape, &b = inputs[1].shape;
    if (condensed == 0 || a == b) return Status::Ok();
    return InvalidArgument("'b': expected the shape of 'a' for condensed distances, ", ToString(a), ", got ",
                           ToString(b));
  }
};

/// Which norm a call computes, and the power of its elements.
struct DistanceNorm {
  enum class Kind { kCount, kSum, kEuclidean, kPower, kMax };
  Kind kind;
  double p;

  explicit DistanceNorm(const Cdist& op)
      : kind(op.p == 0               ? Kind::kCount
             : op.p == 1             ? Kind::kSum
             : op.p == 2             ? Kind::kEuclidean
             : std::isinf(op.p) != 0 ? Kind::kMax
                                     : Kind::kPower),
        p(static_cast<double>(op.p)) {}
};

/// Returns the position of the pair of rows i < j of `rows` rows among the condensed distances.
POLYOP_HD inline int64_t CondensedIndex(int64_t i, int64_t j, int64_t rows) {
  return i * (2 * rows - i - 1) / 2 + j - i - 1;
}

}  // namespace polyop
