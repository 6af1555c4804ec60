// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// The voxel of a regular grid that contains each point.
struct VoxelGrid {
  static constexpr const char* kName = "voxel_grid";
  static constexpr Signature kSignature = "pos: T[N, D], size: T[D], start?: T[D], end?: T[D] -> cluster: i64[N]";
  static constexpr NodeName kNodes[] = {"custom::torch_cluster_grid"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Assigns each point the number of its voxel in a regular grid.",
      .semantics = R"(Dimension d has trunc((end[d] - start[d]) / size[d]) + 1 voxels; the coordinate of a point's
          voxel is trunc((pos[d] - start[d]) / size[d]), and dimension 0 varies fastest. `start` and `end` default
          to the minimum and maximum of the finite coordinates of `pos` (if one of them is given, the other is never
          beyond it). `size` must be positive and finite, `start` and `end` finite, `end` not below `start`, and the
          number of voxels must fit in 64 bits.

          A point outside [start, end] gets the result of the formula, which may be negative or the number of
          another voxel. A point with a NaN or infinite coordinate, or so far outside that its number does not fit
          in 64 bits, gets the lowest 64-bit integer. All arithmetic before the truncation is in fp32.)",
      .source = "`torch_cluster.grid_cluster` (torch.ops.torch_cluster.grid)",
      .differences = R"(torch_cluster includes NaN and infinity in the bounds that it computes, checks nothing, and
          computes fp16 positions in fp16.)",
  };
};

}  // namespace polyop
