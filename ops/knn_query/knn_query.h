#pragma once

#include "core/elements.h"
#include "core/operator.h"
#include "families/points/point_count.h"

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
      .summary = "The `nsample` nearest points of each query point, by Euclidean distance.",
      .semantics =
          "Several point clouds lie one behind the other in `xyz`; `offset` holds the end of each (the last is n), "
          "and `new_offset` the ends of their queries in `new_xyz` (the last is m). Without `new_xyz` and "
          "`new_offset` the points themselves are the queries. A query's neighbours are points of its own cloud, "
          "as row numbers of `xyz`, nearest first; of points at the same distance the one with the lower number "
          "comes first. Distances are compared in fp64. Where a cloud has too few points the rest of a row is -1 "
          "with the distance 1e5. A point with NaN or infinity in it is nobody's neighbour, a query with one has "
          "none. All four tensors of numbers are i32 or i64.",
      .source =
          "`pointops.knn_query`; J. Bentley, Multidimensional Binary Search Trees Used for Associative "
          "Searching, 1975",
      .differences =
          "pointops compares every query with every point, in fp32, knows no neighbour farther than 1e5, takes at "
          "most 128 neighbours and leaves the order of ties open. The search here is exact too, but in a k-d tree.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const AnyTensor& nsample = inputs[0];
    const double samples = nsample.data == nullptr ? 1 : ReadElement(nsample.dtype, nsample.data, 0);
    if (samples < 1) return InvalidArgument("'nsample' is ", samples, ", wanted at least 1");
    const bool has_queries = GivenInput(inputs, 3) != nullptr, has_query_ends = GivenInput(inputs, 4) != nullptr;
    if (has_queries != has_query_ends) {
      return InvalidArgument(
          has_queries ? "'new_xyz' came without 'new_offset'" : "'new_offset' came without 'new_xyz'",
          ", wanted both or neither");
    }
    return CheckPointCount("xyz", inputs[1], 0);
  }
};

}  // namespace polyop
