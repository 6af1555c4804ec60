// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/points/point_count.h"

namespace polyop {

/// The nearest points of each centre, in batches of point clouds.
struct Knn {
  int64_t k = 1;
  bool transposed = false;

  static constexpr const char* kName = "knn";
  static constexpr Signature kSignature =
      "xyz: T[B, P, Q], center?: T[B, R ?= P, S ?= Q] -> idx: i32[B, k, R + transposed * (S - R)]";
  static constexpr NodeName kNodes[] = {"polyop::KNN"};
  static constexpr std::tuple kAttributes = {
      Attr("k", &Knn::k, "number of points to find").AtLeast(1).Required(),
      Attr("transposed", &Knn::transposed,
           "1: `xyz` and `center` are [B, 3, N] and [B, 3, M]; 0: [B, N, 3] and [B, M, 3]"),
  };
  static constexpr Doc kDoc = {
      .summary = "Finds the indices of the `k` nearest points of each of M centres, by Euclidean distance.",
      .semantics = R"(idx[b, :, m] are indices of points of batch entry b, ordered by their distance from centre m,
          nearest first; among points at the same distance the lower index comes first. If `center` is omitted, the
          points are the centres. Distances are compared in fp64. If there are fewer than `k` points, the remaining
          indices are 0. A point with a NaN or infinite coordinate is never a neighbour; a centre with one has no
          neighbours.)",
      .source = "`mmcv.ops.knn`; J. Bentley, Multidimensional Binary Search Trees Used for Associative Searching, 1975",
      .differences = R"(MMCV has no CPU kernel, compares every centre with every point in fp32, and limits k to 99.
          The search here is exact, too, but uses a k-d tree.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const int axis = transposed ? 1 : 2;
    for (size_t i = 0; i < 2; ++i) {
      const AnyTensor* points = GivenInput(inputs, i);
      if (points == nullptr || points->shape[axis] == 3) continue;
      return InvalidArgument("'", i == 0 ? "xyz" : "center", "': expected 3 coordinates in dimension ", axis,
                             transposed ? " (transposed)" : "", ", got shape ", ToString(points->shape));
    }
    return CheckPointCount("xyz", inputs[0], 3 - axis);
  }
};

}  // namespace polyop
