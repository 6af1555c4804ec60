// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/points/ball_rule.h"
#include "ops/points/point_count.h"

namespace polyop {

/// Finds the first points within a ball around each query, and their number.
struct GridBallQuery {
  float radius = 1;
  int64_t nsample = 1;

  static constexpr const char* kName = "grid_ball_query";
  static constexpr Signature kSignature =
      "xyz: T[B, N, 3], query: T[B, M, 3] -> count: i32[B, M], idx: i32[B, M, nsample]";
  static constexpr NodeName kNodes[] = {"polyop::GridBallQuery", "::GridBallQuery", "::BallQuery",
                                        NodeName("polyop::BallQuery").When("nsample")};
  static constexpr std::tuple kAttributes = {
      Attr("radius", &GridBallQuery::radius, "points at this distance or farther are outside").AtLeast(0).Required(),
      Attr("nsample", &GridBallQuery::nsample, "number of points to find for each query").AtLeast(1).Required(),
  };
  static constexpr Doc kDoc = {
      .summary = R"(Finds the first `nsample` points that lie within a distance of each query, and the number of points
          found.)",
      .semantics = R"(A point is inside if its distance from the query is less than `radius`. Distances are compared in
          fp64. Indices are in ascending order. If fewer than `nsample` points are inside, the found indices repeat
          cyclically; if none is inside, all indices are 0. `count` is the number of points found, at most `nsample`. A
          point or query with a NaN or infinite coordinate is outside.)",
      .source = R"(BallQuery and GridBallQuery of `pointcloud-3d-detector-tensorrt`; C. Qi et al., PointNet++: Deep
          Hierarchical Feature Learning on Point Sets in a Metric Space, 2017)",
      .differences = R"(The plugin compares every query with every point, in fp32, and does not write the indices of a
          query that finds no point. MMCV's operator is `ball_query`, which repeats only the first point.)",
  };

  BallRule Rule() const { return {0, BallRule::Square(radius), false}; }

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckPointCount("xyz", inputs[0], 1); }
};

}  // namespace polyop
