#pragma once

#include "core/operator.h"
#include "families/points/point_count.h"

namespace polyop {

/// Points that lie as far from each other as a greedy choice makes them.
struct FurthestPointSampling {
  int64_t num_points = 1;

  static constexpr const char* kName = "furthest_point_sampling";
  static constexpr Signature kSignature = "xyz: T[B, N, 3] -> idx: i32[B, num_points]";
  static constexpr NodeName kNodes[] = {"polyop::FurthestPointSampling", "polyop::FPSampling",
                                        "::FurthestPointSampling", "::FPSampling"};
  static constexpr std::tuple kAttributes = {
      Attr("num_points", &FurthestPointSampling::num_points, "how many points to choose of each cloud")
          .Also("sample_num", "npoint")
          .AtLeast(0)
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary = "Farthest point sampling: the indices of `num_points` points of each cloud.",
      .semantics =
          "Index 0 comes first; then, again and again, the point whose distance from the nearest of those chosen is "
          "greatest, of equals the one with the lowest index. Squared distances are compared in fp32 whatever the type "
          "is, with each product and sum rounded by itself, so that all processors choose the same points. Once every "
          "point is as far as 0 from a chosen one, the lowest index repeats. A point with NaN or infinity in it is "
          "never "
          "chosen, except as point 0. An empty cloud is an error.",
      .source =
          "`mmcv.ops.furthest_point_sample`, `torch_cluster.fps(random_start=False)`; Y. Eldar et al., The Farthest "
          "Point Strategy for Progressive Image Sampling, 1997; large clouds: M. Han et al., QuickFPS, 2023",
      .differences =
          "MMCV has no kernel for CPUs, lets distances begin at 1e10, which is wrong for points that are farther, and "
          "breaks ties by the number of a GPU's thread. Here clouds of many points are put into a k-d tree, and parts "
          "of it "
          "that a new point cannot be nearest to are not looked at: the result is the same.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    POLYOP_RETURN_IF_ERROR(CheckPointCount("xyz", inputs[0], 1));
    if (inputs[0].shape[1] > 0 || inputs[0].shape[0] == 0 || num_points == 0) return Status::Ok();
    return InvalidArgument("'xyz' has no points, wanted at least 1 to choose ", num_points, " of them");
  }
};

}  // namespace polyop
