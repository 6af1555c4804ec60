#pragma once

#include "core/operator.h"
#include "families/points/ball_rule.h"
#include "families/points/point_count.h"

namespace polyop {

/// The first points within a ball around each query, and how many there are.
struct GridBallQuery {
  float radius = 1;
  int64_t nsample = 1;

  static constexpr const char* kName = "grid_ball_query";
  static constexpr Signature kSignature =
      "xyz: T[B, N, 3], query: T[B, M, 3] -> count: i32[B, M], idx: i32[B, M, nsample]";
  static constexpr NodeName kNodes[] = {"polyop::GridBallQuery", "::GridBallQuery", "::BallQuery",
                                        NodeName("polyop::BallQuery").When("nsample")};
  static constexpr std::tuple kAttributes = {
      Attr("radius", &GridBallQuery::radius, "points this far and farther are outside").AtLeast(0).Required(),
      Attr("nsample", &GridBallQuery::nsample, "how many points to find for each query").AtLeast(1).Required(),
  };
  static constexpr Doc kDoc = {
      .summary = "The first `nsample` points that lie within a distance of each query, and how many were found.",
      .semantics =
          "A point is inside if its distance from the query is less than `radius`; distances are compared in fp64. "
          "Indices "
          "rise. Where fewer than `nsample` points are inside, those found repeat from the first on, in turns; where "
          "none "
          "is, indices are 0. `count` is the number of points found, at most `nsample`. A point or a query with NaN or "
          "infinity in it is outside.",
      .source =
          "BallQuery and GridBallQuery of `pointcloud-3d-detector-tensorrt`; C. Qi et al., PointNet++: Deep "
          "Hierarchical Feature Learning on Point Sets in a Metric Space, 2017",
      .differences =
          "The plugin compares every query with every point, in fp32, and leaves the indices of a query that finds "
          "none "
          "as they are. MMCV's operator is `ball_query`, which repeats the first point only.",
  };

  BallRule Rule() const { return {0, BallRule::Square(radius), false}; }

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckPointCount("xyz", inputs[0], 1); }
};

}  // namespace polyop
