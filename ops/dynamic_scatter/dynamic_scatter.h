#pragma once

#include "core/operator.h"

namespace polyop {

/// Features of points reduced by the voxels that the points lie in.
struct DynamicScatter {
  enum class Reduce { kMax, kMean, kSum };
  Reduce reduce_type = Reduce::kMax;

  static constexpr const char* kName = "dynamic_scatter";
  static constexpr Signature kSignature =
      "feats: T[N, C], coors: I[N, D] -> voxel_feats: T[M<=N, C], voxel_coors: I[M, D], point2voxel: i32[N], "
      "counts: i32[M]";
  static constexpr NodeName kNodes[] = {"polyop::DynamicScatter"};
  static constexpr std::tuple kAttributes = {
      Attr("reduce_type", &DynamicScatter::reduce_type, "what is made of the features of a voxel's points")
          .OneOf("max", "mean", "sum"),
  };
  static constexpr Doc kDoc = {
      .summary = "Reduces the features of points voxel by voxel: the greatest, the mean or the sum of each.",
      .semantics =
          "A row of coors is the voxel of a point: (z, y, x), or (picture, z, y, x). Points with a negative coordinate "
          "belong to none. Voxels that have points come in rising order of their coordinates, the first one first; "
          "voxel_coors holds these, counts how many points each has, point2voxel the place of each point's voxel, or "
          "-1. Features are reduced in the order of the points, in float, whatever the number of threads and on GPUs, "
          "too. NaN in a feature gives NaN. There may be at most 2147483647 points.",
      .source = "`mmcv.ops.dynamic_scatter` (dynamic_point_to_voxel)",
      .differences =
          "MMCV's sums on GPUs depend on the run. Gradients of the maximum go to the first point that has it, as in "
          "MMCV; one that is NaN gives its gradient, too.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape& coors = inputs[1].shape;
    if (coors[1] != 3 && coors[1] != 4) {
      return InvalidArgument("'coors' has shape ", ToString(coors), ", wanted 3 or 4 coordinates in dimension 1");
    }
    if (coors[0] <= INT32_MAX) return Status::Ok();
    return InvalidArgument("'coors' has shape ", ToString(coors), ", wanted at most 2147483647 points");
  }
};

}  // namespace polyop
