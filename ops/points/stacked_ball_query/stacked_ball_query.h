// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/points/ball_rule.h"
#include "ops/points/point_count.h"

namespace polyop {

/// The first points within a ball or a shell around each centre, in concatenated clouds.
struct StackedBallQuery {
  float min_radius = 0;
  float max_radius = 1;
  int64_t sample_num = 1;

  static constexpr const char* kName = "stacked_ball_query";
  static constexpr Signature kSignature =
      "xyz: T[N, 3], xyz_batch_cnt: I[B], center_xyz: T[M, 3], center_xyz_batch_cnt: I[B] -> idx: i32[M, sample_num]";
  static constexpr NodeName kNodes[] = {"polyop::StackedBallQuery"};
  static constexpr std::tuple kAttributes = {
      Attr("min_radius", &StackedBallQuery::min_radius, "points nearer than this are not selected").AtLeast(0),
      Attr("max_radius", &StackedBallQuery::max_radius, "points at this distance or farther are not selected")
          .AtLeast(0)
          .Required(),
      Attr("sample_num", &StackedBallQuery::sample_num, "number of points to find for each centre")
          .AtLeast(1)
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary = R"(Finds the first `sample_num` points within a range of distances from each centre, in clouds of
          different sizes.)",
      .semantics = R"(`xyz` is the concatenation of several clouds; `xyz_batch_cnt` holds the number of points of
          each cloud, `center_xyz_batch_cnt` the number of its centres. Both are i32 or i64, and their sums must be
          N and M. A point is selected if it belongs to the cloud of the centre and its distance d from the centre
          is 0 or min_radius <= d < max_radius; distances are compared in fp64. Indices count from the first point
          of the cloud and ascend. If fewer than `sample_num` points are selected, the first one repeats; if none
          are, the first index is -1 and the others are 0. A point with a NaN or infinite coordinate is never
          selected; a centre with one selects nothing.)",
      .source = R"(`mmcv.ops.ball_query` with `xyz_batch_cnt` and `center_xyz_batch_cnt`; C. Qi et al., PointNet++:
          Deep Hierarchical Feature Learning on Point Sets in a Metric Space, 2017)",
      .differences = R"(MMCV has no CPU kernel, compares every centre with every point in fp32, and does not check
          the counts. The search here is exact, too, but uses a k-d tree where the first points of a cloud do not
          fill the ball. For clouds of equal size, see `ball_query`.)",
  };

  BallRule Rule() const { return {BallRule::Square(min_radius), BallRule::Square(max_radius), true}; }

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckPointCount("xyz", inputs[0], 0); }
};

}  // namespace polyop
