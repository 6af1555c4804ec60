// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Reduces the features of the points of each voxel.
struct DynamicScatter {
  enum class Reduce { kMax, kMean, kSum };
  Reduce reduce_type = Reduce::kMax;

  static constexpr const char* kName = "dynamic_scatter";
  static constexpr Signature kSignature =
      "feats: T[N, C], coors: I[N, D] -> voxel_feats: T[M<=N, C], voxel_coors: I[M, D], point2voxel: i32[N], "
      "counts: i32[M]";
  static constexpr NodeName kNodes[] = {"polyop::DynamicScatter"};
  static constexpr std::tuple kAttributes = {
      Attr("reduce_type", &DynamicScatter::reduce_type, "reduction of the features of a voxel's points")
          .OneOf("max", "mean", "sum"),
  };
  static constexpr Doc kDoc = {
      .summary = "Reduces the features of the points of each voxel to their maximum, mean or sum.",
      .semantics = R"(A row of `coors` is the voxel of a point: (z, y, x) or (batch index, z, y, x). Points with a
          negative coordinate are dropped. Voxels with points are listed in ascending lexicographic order of their
          coordinates: `voxel_coors` holds the coordinates, `counts` the number of points of each voxel, and
          `point2voxel` the index of each point's voxel, or -1. Features are reduced in the order of the points, in
          fp32, independently of the number of threads, on CPU and GPU. NaN in a feature gives NaN. There are at most
          2147483647 points.)",
      .source = "`mmcv.ops.dynamic_scatter` (dynamic_point_to_voxel)",
      .differences = R"(MMCV's sums on GPUs are non-deterministic. Gradients of the maximum go to the first point that
          attains it, as in MMCV; a point whose feature is NaN receives the gradient, too.)",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape& coors = inputs[1].shape;
    if (coors[1] != 3 && coors[1] != 4) {
      return InvalidArgument("'coors': expected 3 or 4 coordinates in dimension 1, got ", coors[1], " (shape ",
                             ToString(coors), ")");
    }
    if (coors[0] <= INT32_MAX) return Status::Ok();
    return InvalidArgument("'coors': expected at most 2147483647 points, got ", coors[0]);
  }
};

}  // namespace polyop
