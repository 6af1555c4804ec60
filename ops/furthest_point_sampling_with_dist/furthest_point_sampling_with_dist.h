#pragma once

#include "core/operator.h"
#include "families/points/point_count.h"

namespace polyop {

/// Farthest point sampling by distances that are given.
struct FurthestPointSamplingWithDist {
  int64_t num_points = 1;

  static constexpr const char* kName = "furthest_point_sampling_with_dist";
  static constexpr Signature kSignature = "dist: T[B, N, N] -> idx: i32[B, num_points]";
  static constexpr NodeName kNodes[] = {"polyop::FurthestPointSamplingWithDist"};
  static constexpr std::tuple kAttributes = {
      Attr("num_points", &FurthestPointSamplingWithDist::num_points, "how many points to choose of each cloud")
          .AtLeast(0)
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary = "Farthest point sampling of points whose distances from each other are known.",
      .semantics =
          "Index 0 comes first; then, again and again, the point i whose least dist[b, j, i] of the chosen j is "
          "greatest, "
          "of equals the one with the lowest index. Distances are taken as they are: the matrix need be neither "
          "symmetric "
          "nor zero on its diagonal, and they may be squared or not. NaN counts for nothing: a point that is NaN away "
          "from all that were chosen is infinitely far. An empty cloud is an error.",
      .source =
          "`mmcv.ops.furthest_point_sample_with_dist`; Z. Yang et al., 3DSSD: Point-based 3D Single Stage Object "
          "Detector, 2020",
      .differences = "MMCV has no kernel for CPUs, and breaks ties by the number of a GPU's thread.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    POLYOP_RETURN_IF_ERROR(CheckPointCount("dist", inputs[0], 1));
    if (inputs[0].shape[1] > 0 || inputs[0].shape[0] == 0 || num_points == 0) return Status::Ok();
    return InvalidArgument("'dist' has no points, wanted at least 1 to choose ", num_points, " of them");
  }
};

}  // namespace polyop
