#pragma once

#include "core/operator.h"

namespace polyop {

/// The voxel of a regular grid that each point lies in.
struct VoxelGrid {
  static constexpr const char* kName = "voxel_grid";
  static constexpr Signature kSignature = "pos: T[N, D], size: T[D], start?: T[D], end?: T[D] -> cluster: i64[N]";
  static constexpr NodeName kNodes[] = {"custom::torch_cluster_grid"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Numbers the voxels of a regular grid and gives each point the number of its voxel.",
      .semantics =
          "Dimension d has trunc((end[d] - start[d]) / size[d]) + 1 voxels; a point's coordinate there is "
          "trunc((pos[d] - start[d]) / size[d]), and dimension 0 varies fastest. `start` and `end` are the least and "
          "the greatest finite coordinates of `pos` unless they are given (the one not given is never beyond the one "
          "that is). `size` must be positive, `start` and "
          "`end` finite, `end` not below `start`, and the number of voxels must fit in 64 bits. A point outside of "
          "[start, end] gets what the formula gives: a number that may be negative or that another voxel has as "
          "well. A point with NaN or infinity in it, or so far outside that its number does not fit in 64 bits, "
          "gets the lowest 64-bit integer. All arithmetic before truncation is in fp32.",
      .source = "`torch_cluster.grid_cluster` (torch.ops.torch_cluster.grid)",
      .differences =
          "torch_cluster takes NaN and infinity into the bounds that it finds itself, checks nothing, and computes "
          "fp16 positions in fp16.",
  };
};

}  // namespace polyop
