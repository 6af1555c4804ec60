// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/points/point_count.h"

namespace polyop {

/// Farthest point sampling by a given distance matrix.
struct FurthestPointSamplingWithDist {
  int64_t num_points = 1;

  static constexpr const char* kName = "furthest_point_sampling_with_dist";
  static constexpr Signature kSignature = "dist: T[B, N, N] -> idx: i32[B, num_points]";
  static constexpr NodeName kNodes[] = {"polyop::FurthestPointSamplingWithDist"};
  static constexpr std::tuple kAttributes = {
      Attr("num_points", &FurthestPointSamplingWithDist::num_points, "number of points to choose from each cloud")
          .AtLeast(0)
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary = "Farthest point sampling by a given matrix of distances.",
      .semantics = R"(Index 0 comes first. Each further choice is the point i whose minimum of dist[b, j, i] over the
          chosen j is greatest; of equal values, the lowest index wins. Distances are used as they are: the matrix need
          not be symmetric nor zero on its diagonal, and distances may be squared. NaN is ignored: a point whose
          distances from all chosen points are NaN is infinitely far away. An empty cloud is an error.)",
      .source = R"(`mmcv.ops.furthest_point_sample_with_dist`; Z. Yang et al., 3DSSD: Point-based 3D Single Stage Object
          Detector, 2020)",
      .differences = "MMCV has no CPU kernel, and breaks ties by the GPU thread's number.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    POLYOP_RETURN_IF_ERROR(CheckPointCount("dist", inputs[0], 1));
    if (inputs[0].shape[1] > 0 || inputs[0].shape[0] == 0 || num_points == 0) return Status::Ok();
    return InvalidArgument("'dist': expected at least 1 point to choose ", num_points, " from, got 0");
  }
};

}  // namespace polyop
