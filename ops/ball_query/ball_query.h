#pragma once

#include "core/operator.h"
#include "families/points/ball_rule.h"
#include "families/points/point_count.h"

namespace polyop {

/// The first points within a ball or a shell around each centre.
struct BallQuery {
  float min_radius = 0;
  float max_radius = 1;
  int64_t sample_num = 1;

  static constexpr const char* kName = "ball_query";
  static constexpr Signature kSignature = "xyz: T[B, N, 3], center_xyz: T[B, M, 3] -> idx: i32[B, M, sample_num]";
  static constexpr NodeName kNodes[] = {"polyop::BallQuery"};
  static constexpr std::tuple kAttributes = {
      Attr("min_radius", &BallQuery::min_radius, "points nearer than this are outside").AtLeast(0),
      Attr("max_radius", &BallQuery::max_radius, "points this far and farther are outside").AtLeast(0).Required(),
      Attr("sample_num", &BallQuery::sample_num, "how many points to find for each centre").AtLeast(1).Required(),
  };
  static constexpr Doc kDoc = {
      .summary = "The first `sample_num` points that lie within a distance of each centre.",
      .semantics =
          "A point is inside if its distance d from the centre is 0 or min_radius <= d < max_radius; distances are "
          "compared in fp64. Indices rise. Where there are fewer than `sample_num` points inside, the first one "
          "repeats; "
          "where there is none, all indices are 0. A point or a centre with NaN or infinity in it is outside.",
      .source =
          "`mmcv.ops.ball_query`; C. Qi et al., PointNet++: Deep Hierarchical Feature Learning on Point Sets in a "
          "Metric "
          "Space, 2017",
      .differences =
          "MMCV has no kernel for CPUs and compares every centre with every point, in fp32. The search here is exact "
          "too, "
          "but goes through a k-d tree where a cloud's first points do not fill the ball. MMCV's form for clouds of "
          "different sizes is `stacked_ball_query`.",
  };

  BallRule Rule() const { return {BallRule::Square(min_radius), BallRule::Square(max_radius), true}; }

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckPointCount("xyz", inputs[0], 1); }
};

}  // namespace polyop
