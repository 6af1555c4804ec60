// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/points/point_count.h"

namespace polyop {

/// Chooses points far from each other, greedily.
struct FurthestPointSampling {
  int64_t num_points = 1;

  static constexpr const char* kName = "furthest_point_sampling";
  static constexpr Signature kSignature = "xyz: T[B, N, 3] -> idx: i32[B, num_points]";
  static constexpr NodeName kNodes[] = {"polyop::FurthestPointSampling", "polyop::FPSampling",
                                        "::FurthestPointSampling", "::FPSampling"};
  static constexpr std::tuple kAttributes = {
      Attr("num_points", &FurthestPointSampling::num_points, "number of points to choose from each cloud")
          .Also("sample_num", "npoint")
          .AtLeast(0)
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary = "Farthest point sampling: returns the indices of `num_points` points of each cloud.",
      .semantics = R"(Index 0 comes first. Each further choice is the point with the greatest distance to its nearest
          chosen point; of equal distances, the lowest index wins. Squared distances are compared in fp32 for every
          type, and each product and sum is rounded separately, so that all devices choose the same points. Once every
          point has distance 0 to a chosen one, the lowest index repeats. A point with a NaN or infinite coordinate is
          never chosen, except as point 0. An empty cloud is an error.)",
      .source = R"(`mmcv.ops.furthest_point_sample`, `torch_cluster.fps(random_start=False)`; Y. Eldar et al., The
          Farthest Point Strategy for Progressive Image Sampling, 1997; large clouds: M. Han et al., QuickFPS, 2023)",
      .differences = R"(MMCV has no CPU kernel, initialises distances with 1e10, which is wrong for points farther
          apart, and breaks ties by the GPU thread's number. polyop puts large clouds into a k-d tree and skips the
          parts that a new point cannot affect; the result is the same.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    POLYOP_RETURN_IF_ERROR(CheckPointCount("xyz", inputs[0], 1));
    if (inputs[0].shape[1] > 0 || inputs[0].shape[0] == 0 || num_points == 0) return Status::Ok();
    return InvalidArgument("'xyz': expected at least 1 point to choose ", num_points, " from, got 0");
  }
};

}  // namespace polyop
