// SPDX-License-Identifier: Apache-2.0
// Assigns points to voxels, which are created in the order of their first points and hold a limited number of points.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/context.h"
#include "core/status.h"
#include "kernels/cpu/radix_sort.h"
#include "ops/voxels/cell_grid.h"

namespace polyop {

/// The voxels of a cloud in the order of their first points. Voxel v holds points()[starts()[v], starts()[v + 1]), in
/// ascending order.
class VoxelMembers {
 public:
  VoxelMembers(const Context& context, int64_t points, int64_t max_voxels)
      : context_(context),
        points_(context.Allocate<int32_t>(points)),
        voxel_of_(context.Allocate<int32_t>(points)),
        starts_(context.Allocate<int32_t>(std::min(points, max_voxels) + 1)) {}

  const int32_t* points() const { return points_.data(); }
  const int32_t* starts() const { return starts_.data(); }
  int64_t count() const { return count_; }
  int64_t SizeOf(int64_t v) const { return starts_[v + 1] - starts_[v]; }

  /// Assigns `count` points with flat indices `cells` below `all_cells`, or kNoCell; may overwrite `cells`. Ignores
  /// points that would create more than `max_voxels` voxels or exceed `max_points` in a voxel.
  Status Find(int32_t* cells, int64_t count, int64_t all_cells, int64_t max_voxels, int64_t max_points) {
    if (!points_ || !voxel_of_ || !starts_) return Internal("out of memory: voxels of ", count, " points");
    // Uses a table of all cells if that is cheaper than sorting the points' cells to renumber the occupied ones.
    if (all_cells > kFewCells + count * kCellsOfAPoint) POLYOP_RETURN_IF_ERROR(Renumber(cells, count, &all_cells));
    const Scratch<int32_t> voxel_at = context_.Allocate<int32_t>(all_cells);
    if (!voxel_at) return Internal("out of memory: ", all_cells, " cells");
    std::fill_n(voxel_at.data(), all_cells, kNone);
    int32_t* const sizes = starts_.data();
    int32_t opened = 0;
    for (int64_t i = 0; i < count; ++i) {
      voxel_of_[i] = kNone;
      if (cells[i] == kNoCell) continue;
      int32_t& voxel = voxel_at[cells[i]];
      if (voxel == kNone) {
        if (opened == max_voxels) continue;
        sizes[opened] = 0;
        voxel = opened++;
      }
      if (sizes[voxel] == max_points) continue;
      ++sizes[voxel];
      voxel_of_[i] = voxel;
    }
    count_ = opened;
    int32_t sum = 0;
    for (int64_t v = 0; v < opened; ++v) sum += std::exchange(sizes[v], sum);
    // The starts move to the ends of their voxels and back.
    for (int64_t i = 0; i < count; ++i) {
      if (voxel_of_[i] != kNone) points_[sizes[voxel_of_[i]]++] = static_cast<int32_t>(i);
    }
    for (int64_t v = opened; v > 0; --v) sizes[v] = sizes[v - 1];
    sizes[0] = 0;
    return Status::Ok();
  }

 private:
  static constexpr int32_t kNone = -1;
  static constexpr int64_t kFewCells = 1 << 16, kCellsOfAPoint = 16;

  // Replaces the cells by their ranks among the occupied cells.
  Status Renumber(int32_t* cells, int64_t count, int64_t* occupied) const {
    RadixSort sort(context_, count);
    if (!sort) return Internal("out of memory: cells of ", count, " points");
    int64_t inside = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (cells[i] == kNoCell) continue;
      sort.keys()[inside] = static_cast<uint64_t>(cells[i]);
      sort.values()[inside++] = static_cast<int32_t>(i);
    }
    POLYOP_RETURN_IF_ERROR(sort.Sort(inside));
    int32_t rank = -1;
    for (int64_t i = 0; i < inside; ++i) {
      rank += i == 0 || sort.keys()[i] != sort.keys()[i - 1];
      cells[sort.values()[i]] = rank;
    }
    *occupied = rank + 1;
    return Status::Ok();
  }

  const Context& context_;
  Scratch<int32_t> points_, voxel_of_, starts_;
  int64_t count_ = 0;
};

}  // namespace polyop
