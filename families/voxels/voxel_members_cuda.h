// Which points each voxel holds, as families/voxels/voxel_members.h has it, for several clouds on the GPU.
#pragma once

#include <bit>

#include "families/voxels/cell_grid.h"
#include "kernels/cuda/device_sort.h"
#include "kernels/cuda/sorted_runs.h"

namespace polyop {

/// Voxel v of cloud b holds sizes[b * most + v] points, points[starts[b * most + v]] and those behind it, numbered over
/// all clouds; voxels that were not opened hold 0.
struct VoxelMembersCuda {
  const int32_t* points;
  int64_t* starts;
  int32_t* sizes;
  int64_t* opened;  // voxels of each cloud
  int64_t clouds, most;

  /// cell_of(point): the point's cell, below `all_cells`, or kNoCell. `most_points` is what a voxel holds at most.
  template <class CellOf>
  static Status Find(const CudaContext& cuda, int64_t clouds, int64_t of_cloud, int64_t all_cells, int64_t most,
                     int64_t most_points, const CellOf& cell_of, VoxelMembersCuda* members) {
    const int64_t count = clouds * of_cloud,
                  keys_of_cloud = all_cells + 1;  // the last of them of points without a cell
    SortPairs sort = SortPairs::Allocate(cuda, count);
    int64_t* const opens_before = cuda.Allocate<int64_t>(count + 1);
    bool* const opens = cuda.Allocate<bool>(count);
    int64_t* const starts = cuda.Allocate<int64_t>(clouds * most);
    int32_t* const sizes = cuda.Allocate<int32_t>(clouds * most);
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
        SortedRuns::Find(cuda, count, [=] POLYOP_HD(int64_t i) { return keys[i] != keys[i - 1]; }, &runs));
    const auto is_voxel = [=] POLYOP_HD(int64_t place) {
      return static_cast<int64_t>(keys[place]) % keys_of_cloud != all_cells;
    };
    // The sort is stable: the first point of a run opens its voxel.
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t r) {
      if (r < runs.count() && is_voxel(runs.starts[r])) opens[points[runs.starts[r]]] = true;
    }));
    POLYOP_RETURN_IF_ERROR(
        PrefixSumsOfMany(cuda, count, [=] POLYOP_HD(int64_t i) { return int64_t{opens[i]}; }, opens_before));
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, clouds, [=] POLYOP_DEVICE(int64_t b) {
      const int64_t all = opens_before[(b + 1) * of_cloud] - opens_before[b * of_cloud];
      opened[b] = all < most ? all : most;
    }));
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, clouds * most, [=] POLYOP_DEVICE(int64_t v) {
      starts[v] = 0;
      sizes[v] = 0;
    }));
    const Divider by_cloud(of_cloud);
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t r) {
      if (r >= runs.count() || !is_voxel(runs.starts[r])) return;
      const int64_t first = points[runs.starts[r]], b = by_cloud.Quotient(first);
      const int64_t number = opens_before[first] - opens_before[b * of_cloud], size = runs.SizeOf(r);
      if (number >= most) return;
      starts[b * most + number] = runs.starts[r];
      sizes[b * most + number] = static_cast<int32_t>(size < most_points ? size : most_points);
    }));
    *members = {points, starts, sizes, opened, clouds, most};
    return Status::Ok();
  }

  /// Member k of voxel v (over all clouds), or -1 where it holds fewer.
  POLYOP_HD int64_t PointOf(int64_t v, int64_t k) const { return k < sizes[v] ? points[starts[v] + k] : -1; }
};

}  // namespace polyop
