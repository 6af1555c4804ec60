// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/points/point_count.h"

namespace polyop {

/// The three nearest points of each point, in another cloud.
struct ThreeNN {
  static constexpr const char* kName = "three_nn";
  static constexpr Signature kSignature =
      "target: T[B, N, 3], source: T[B, M, 3] -> dist: T[B, N, 3], idx: i32[B, N, 3]";
  static constexpr NodeName kNodes[] = {"polyop::ThreeNN"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Finds the three points of `source` that are nearest to each point of `target`, and their distances.",
      .semantics = R"(Points are listed nearest first; among points at the same distance the lower index comes
          first. Distances are Euclidean, not squared, and compared in fp64. If `source` has fewer than three
          points, the remaining entries have index 0 and infinite distance; it is an error if it has none. A point
          with a NaN or infinite coordinate is never a neighbour and has no neighbours.)",
      .source = R"(`mmcv.ops.three_nn`; C. Qi et al., PointNet++: Deep Hierarchical Feature Learning on Point Sets
          in a Metric Space, 2017; J. Bentley, Multidimensional Binary Search Trees Used for Associative Searching,
          1975)",
      .differences = R"(MMCV has no CPU kernel and compares every point with every other in fp32. The search here is
          exact, too, but uses a k-d tree.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    POLYOP_RETURN_IF_ERROR(CheckPointCount("source", inputs[1], 1));
    if (inputs[1].shape[1] > 0 || inputs[0].shape[0] == 0 || inputs[0].shape[1] == 0) return Status::Ok();
    return InvalidArgument("'source': expected at least 1 point, got none");
  }
};

}  // namespace polyop
