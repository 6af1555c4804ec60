// SPDX-License-Identifier: Apache-2.0
// Assigns points to voxels, like ops/voxels/voxel_members.h, for several clouds on the GPU.
#pragma once

#include <bit>

#include "kernels/cuda/device_sort.h"
#include "kernels/cuda/sorted_runs.h"
#include "ops/voxels/cell_grid.h"

namespace polyop {

/// Voxel v of cloud b, whose index is i = b * max_voxels + v, holds the sizes[i] points starting at points[starts[i]],
/// which are indices across all clouds. Unused voxels hold 0 points.
struct VoxelMembersCuda {
  const int32_t* points;
  int64_t* starts;
  int32_t* sizes;
  int64_t* opened;  // voxels of each cloud
  int64_t clouds, max_voxels;

  /// Finds the voxels. cell_of(point) returns the point's cell, below `all_cells`, or kNoCell. A voxel holds at most
  /// `max_points` points.
  template <class CellOf>
  static Status Find(const CudaContext& cuda, int64_t clouds, int64_t of_cloud, int64_t all_cells, int64_t max_voxels,
                     int64_t max_points, const CellOf& cell_of, VoxelMembersCuda* members) {
    const int64_t count = clouds * of_cloud,
                  keys_of_cloud = all_cells + 1;  // the last one is for points without a cell
    SortPairs sort = SortPairs::Allocate(cuda, count);
    int64_t* const opens_before = cuda.Allocate<int64_t>(count + 1);
    bool* const opens = cuda.Allocate<bool>(count);
    int64_t* const starts = cuda.Allocate<int64_t>(clouds * max_voxels);
    int32_t* const sizes = cuda.Allocate<int32_t>(clouds * max_voxels);
    int64_t* const opened = cuda.Allocate<int64_t>(clouds);
    {
      uint64_t* const keys = sort.keys;
      int32_t* const values = sort.values;
      const Divider by_cloud(of_cloud);
      POLYOP_RETURN_IF_ERROR(ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) {
        const int32_t cell = cell_of(i);
        const int64_t in_cloud = cell == kNoCell ? all_cells : cell;
        keys[i] = static_cast<uint64_t>(by_cloud.Quotient(i) * keys_of_cloud + in_cloud);
        values[i] = static_cast<int32_t>(i);
        opens[i] = false;
      }));
    }
    POLYOP_RETURN_IF_ERROR(sort.Sort(cuda, std::bit_width(static_cast<uint64_t>(clouds * keys_of_cloud))));
    const uint64_t* const keys = sort.keys;
    const int32_t* const points = sort.values;
    SortedRuns runs;
    POLYOP_RETURN_IF_ERROR(
        SortedRuns::Find(cuda, count, [=] POLYOP_DEVICE(int64_t i) { return keys[i] != keys[i - 1]; }, &runs));
    const auto is_voxel = [=] POLYOP_DEVICE(int64_t position) {
      return static_cast<int64_t>(keys[position]) % keys_of_cloud != all_cells;
    };
    // The sort is stable: the first point of a run creates its voxel.
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t r) {
      if (r < runs.count() && is_voxel(runs.starts[r])) opens[points[runs.starts[r]]] = true;
    }));
    POLYOP_RETURN_IF_ERROR(
        TiledPrefixSums(cuda, count, [=] POLYOP_DEVICE(int64_t i) { return int64_t{opens[i]}; }, opens_before));
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, clouds, [=] POLYOP_DEVICE(int64_t b) {
      const int64_t all = opens_before[(b + 1) * of_cloud] - opens_before[b * of_cloud];
      opened[b] = all < max_voxels ? all : max_voxels;
    }));
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, clouds * max_voxels, [=] POLYOP_DEVICE(int64_t v) {
      starts[v] = 0;
      sizes[v] = 0;
    }));
    const Divider by_cloud(of_cloud);
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t r) {
      if (r >= runs.count() || !is_voxel(runs.starts[r])) return;
      const int64_t first = points[runs.starts[r]], b = by_cloud.Quotient(first);
      const int64_t number = opens_before[first] - opens_before[b * of_cloud], size = runs.SizeOf(r);
      if (number >= max_voxels) return;
      starts[b * max_voxels + number] = runs.starts[r];
      sizes[b * max_voxels + number] = static_cast<int32_t>(size < max_points ? size : max_points);
    }));
    *members = {points, starts, sizes, opened, clouds, max_voxels};
    return Status::Ok();
  }

  /// Returns point k of voxel v, indexed across all clouds, or -1 if it holds fewer.
  POLYOP_HD int64_t PointOf(int64_t v, int64_t k) const { return k < sizes[v] ? points[starts[v] + k] : -1; }
};

}  // namespace polyop
