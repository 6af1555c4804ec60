#pragma once

#include "core/operator.h"
#include "families/points/ball_rule.h"
#include "families/points/point_count.h"

namespace polyop {

/// The first points within a ball or a shell around each centre, in stacked clouds.
struct StackedBallQuery {
  float min_radius = 0;
  float max_radius = 1;
  int64_t sample_num = 1;

  static constexpr const char* kName = "stacked_ball_query";
  static constexpr Signature kSignature =
      "xyz: T[N, 3], xyz_batch_cnt: I[B], center_xyz: T[M, 3], center_xyz_batch_cnt: I[B] -> idx: i32[M, sample_num]";
  static constexpr NodeName kNodes[] = {"polyop::StackedBallQuery"};
  static constexpr std::tuple kAttributes = {
      Attr("min_radius", &StackedBallQuery::min_radius, "points nearer than this are outside").AtLeast(0),
      Attr("max_radius", &StackedBallQuery::max_radius, "points this far and farther are outside")
          .AtLeast(0)
          .Required(),
      Attr("sample_num", &StackedBallQuery::sample_num, "how many points to find for each centre")
          .AtLeast(1)
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary =
          "The first `sample_num` points that lie within a distance of each centre, in clouds of different sizes.",
      .semantics =
          "Several clouds lie one behind the other in `xyz`; `xyz_batch_cnt` holds the number of points in each, "
          "`center_xyz_batch_cnt` that of its centres. They are i32 or i64 and must add up to N and M. A point is "
          "inside if "
          "it is of the centre's cloud and its distance d from the centre is 0 or min_radius <= d < max_radius; "
          "distances "
          "are compared in fp64. Indices count from the cloud's first point, and rise. Where there are fewer than "
          "`sample_num` points inside, the first one repeats; where there is none, the first index is -1 and the "
          "others are "
          "0. A point or a centre with NaN or infinity in it is outside.",
      .source =
          "`mmcv.ops.ball_query` with `xyz_batch_cnt` and `center_xyz_batch_cnt`; C. Qi et al., PointNet++: Deep "
          "Hierarchical Feature Learning on Point Sets in a Metric "
          "Space, 2017",
      .differences =
          "MMCV has no kernel for CPUs, compares every centre with every point, in fp32, and checks no counts. The "
          "search "
          "here is exact too, but goes through a k-d tree where a cloud's first points do not fill the ball. Clouds of "
          "one "
          "size are `ball_query`'s.",
  };

  BallRule Rule() const { return {BallRule::Square(min_radius), BallRule::Square(max_radius), true}; }

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckPointCount("xyz", inputs[0], 0); }
};

}  // namespace polyop
