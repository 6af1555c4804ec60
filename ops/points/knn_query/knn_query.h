// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/elements.h"
#include "core/operator.h"
#include "ops/points/point_count.h"

namespace polyop {

/// The nearest points of each query, within its segment of a batch of point clouds.
struct KnnQuery {
  static constexpr const char* kName = "knn_query";
  static constexpr Signature kSignature =
      "nsample: K[], xyz: f32[n, 3], offset: I[b], new_xyz?: f32[m ?= n, 3], new_offset?: J[b] "
      "-> idx: i32[m, nsample], dist: f32[m, nsample]";
  static constexpr NodeName kNodes[] = {"custom::knnquery"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Finds the `nsample` nearest points of each query point, by Euclidean distance.",
      .semantics = R"(`xyz` is the concatenation of several point clouds. `offset` holds the end of each cloud (the
          last one is n), and `new_offset` the ends of the clouds' queries in `new_xyz` (the last one is m). If
          `new_xyz` and `new_offset` are omitted, the points are the queries. `nsample`, `offset` and `new_offset`
          may be i32 or i64, independently of each other.

          The neighbours of a query are points of its own cloud, given as row indices of `xyz`, nearest first; among
          points at the same distance the lower index comes first. Distances are compared in fp64. If a cloud has
          too few points, the remaining indices are -1 and the remaining distances 1e5. A point with a NaN or
          infinite coordinate is never a neighbour; a query with one has no neighbours.)",
      .source =
          "`pointops.knn_query`; J. Bentley, Multidimensional Binary Search Trees Used for Associative Searching, 1975",
      .differences = R"(pointops compares every query with every point in fp32, ignores neighbours farther than 1e5,
          limits nsample to 128 and leaves the order of ties unspecified. The search here is exact, too, but uses a
          k-d tree.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const AnyTensor& nsample = inputs[0];
    const double samples = nsample.data == nullptr ? 1 : ReadElement(nsample.dtype, nsample.data, 0);
    if (samples < 1) return InvalidArgument("'nsample': expected at least 1, got ", samples);
    const bool has_queries = GivenInput(inputs, 3) != nullptr, has_query_ends = GivenInput(inputs, 4) != nullptr;
    if (has_queries != has_query_ends) {
      return InvalidArgument("'new_xyz' and 'new_offset': expected both or neither, got only '",
                             has_queries ? "new_xyz" : "new_offset", "'");
    }
    return CheckPointCount("xyz", inputs[1], 0);
  }
};

}  // namespace polyop
