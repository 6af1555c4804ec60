#pragma once

#include "core/operator.h"
#include "families/points/point_count.h"

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
      Attr("k", &Knn::k, "how many points to find").AtLeast(1).Required(),
      Attr("transposed", &Knn::transposed,
           "`xyz` and `center` are [B, 3, N] and [B, 3, M], else [B, N, 3] and [B, M, 3]"),
  };
  static constexpr Doc kDoc = {
      .summary = "The indices of the `k` nearest points of each of M centres, by Euclidean distance.",
      .semantics =
          "idx[b, :, m] are points of batch entry b, nearest to centre m first; of points at the same distance the one "
          "with the lower index comes first. Without `center` the points themselves are the centres. Distances are "
          "compared "
          "in fp64. Where there are fewer than `k` points the rest is 0. A point with NaN or infinity in it is "
          "nobody's "
          "neighbour, a centre with one has none.",
      .source = "`mmcv.ops.knn`; J. Bentley, Multidimensional Binary Search Trees Used for Associative Searching, 1975",
      .differences =
          "MMCV has no kernel for CPUs, compares every centre with every point, in fp32, and takes k up to 99. The "
          "search "
          "here is exact too, but in a k-d tree.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const int axis = transposed ? 1 : 2;
    for (size_t i = 0; i < 2; ++i) {
      const AnyTensor* points = GivenInput(inputs, i);
      if (points == nullptr || points->shape[axis] == 3) continue;
      return InvalidArgument("'", i == 0 ? "xyz" : "center", "' has shape ", ToString(points->shape),
                             ", wanted 3 coordinates in dimension ", axis, transposed ? " (transposed)" : "");
    }
    return CheckPointCount("xyz", inputs[0], 3 - axis);
  }
};

}  // namespace polyop
