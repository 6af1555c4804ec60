// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/points/ball_rule.h"
#include "ops/points/point_count.h"

namespace polyop {

/// Finds the first points within a ball or a shell around each centre.
struct BallQuery {
  float min_radius = 0;
  float max_radius = 1;
  int64_t sample_num = 1;

  static constexpr const char* kName = "ball_query";
  static constexpr Signature kSignature = "xyz: T[B, N, 3], center_xyz: T[B, M, 3] -> idx: i32[B, M, sample_num]";
  static constexpr NodeName kNodes[] = {"polyop::BallQuery"};
  static constexpr std::tuple kAttributes = {
      Attr("min_radius", &BallQuery::min_radius, "inner radius: points nearer than this are outside").AtLeast(0),
      Attr("max_radius", &BallQuery::max_radius, "outer radius: points at this distance or farther are outside")
          .AtLeast(0)
          .Required(),
      Attr("sample_num", &BallQuery::sample_num, "number of points to find for each centre").AtLeast(1).Required(),
  };
  static constexpr Doc kDoc = {
      .summary = "Finds the first `sample_num` points that lie within a distance of each centre.",
      .semantics = R"(A point is inside if its distance d from the centre is 0 or min_radius <= d < max_radius.
          Distances are compared in fp64. Indices are in ascending order. If fewer than `sample_num` points are inside,
          the first of them repeats; if none is inside, all indices are 0. A point or centre with a NaN or infinite
          coordinate is outside.)",
      .source = R"(`mmcv.ops.ball_query`; C. Qi et al., PointNet++: Deep Hierarchical Feature Learning on Point Sets in
          a Metric Space, 2017)",
      .differences = R"(MMCV has no CPU kernel and compares every centre with every point, in fp32. polyop's search is
          exact too, but uses a k-d tree if the first points of a cloud do not fill the ball. MMCV's variant for clouds
          of different sizes is `stacked_ball_query`.)",
  };

  BallRule Rule() const { return {BallRule::Square(min_radius), BallRule::Square(max_radius), true}; }

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckPointCount("xyz", inputs[0], 1); }
};

}  // namespace polyop
