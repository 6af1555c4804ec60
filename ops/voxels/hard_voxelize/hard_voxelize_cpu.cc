// SPDX-License-Identifier: Apache-2.0
// A cloud takes three steps: the cells of all points, in parallel, with a point in each lane (cells-inl.h); the voxels
// of the points, in one thread, because voxels are numbered in the order of their first points (voxel_members.h); and
// the copies of the points, in parallel over the voxels.
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/voxels/hard_voxelize/hard_voxelize_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "core/words.h"
#include "kernels/cpu/simd.h"
#include "ops/voxels/cells-inl.h"
#include "ops/voxels/hard_voxelize/hard_voxelize.h"
#include "ops/voxels/padded_rows-inl.h"
#include "ops/voxels/voxel_members.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Copies the points of the members to `count` voxels of `row` words each and fills the rest with 0.
template <class Word>
Status CopyPoints(const Context& context, const Word* points, int64_t columns, const VoxelMembers& members,
                  int64_t count, int64_t row, Word* voxels) {
  return WritePaddedRows(context, count, row, voxels, [&](int64_t v, Word* at) {
    if (v >= members.count()) return at;
    for (int64_t i = members.starts()[v]; i < members.starts()[v + 1]; ++i) {
      const Word* const from = points + members.points()[i] * columns;
      for (int64_t c = 0; c < columns; ++c) *at++ = from[c];
    }
    return at;
  });
}

// Writes the cells and the numbers of points of the members' voxels.
template <class T>
void Describe(const CellGrid& grid, const T* points, int64_t columns, const VoxelMembers& members, int32_t* coors,
              int32_t* num_points) {
  for (int64_t v = 0; v < members.count(); ++v) {
    const T* const first = points + members.points()[members.starts()[v]] * columns;
    int32_t at[3] = {};
    grid.Find(ToFloat(first[0]), ToFloat(first[1]), ToFloat(first[2]), at);
    for (int a = 0; a < 3; ++a) coors[3 * v + a] = at[2 - a];
    num_points[v] = static_cast<int32_t>(members.SizeOf(v));
  }
}

// Finds the members of the voxels of one cloud.
template <class T>
Status FindMembers(const HardVoxelize& op, const Context& context, const T* points, int64_t count, int64_t columns,
                   int32_t* cells, VoxelMembers* members) {
  const CellGrid grid = op.grid();
  NumberCells(context, grid, points, count, columns, cells);
  return members->Find(cells, count, grid.total(), op.max_voxels, op.max_num_points);
}

template <class T>
Status VoxelizeCloud(const HardVoxelize& op, const Context& context, Tensor<const T, 2> points, Pending<T, 3> voxels,
                     Pending<int32_t, 2> coors, Pending<int32_t, 1> num_points,
                     std::optional<Tensor<int32_t, 1>> voxel_num) {
  using Word = WordOf<T>;
  const int64_t count = points.dim(0), columns = points.dim(1);
  const Scratch<int32_t> cells = context.Allocate<int32_t>(count);
  VoxelMembers members(context, count, op.max_voxels);
  if (!cells) return Internal("out of memory: cells of ", count, " points");
  POLYOP_RETURN_IF_ERROR(FindMembers(op, context, points.data(), count, columns, cells.data(), &members));
  Tensor<T, 3> voxel_data;
  Tensor<int32_t, 2> at;
  Tensor<int32_t, 1> sizes;
  POLYOP_RETURN_IF_ERROR(voxels.Allocate(members.count(), &voxel_data));
  POLYOP_RETURN_IF_ERROR(coors.Allocate(members.count(), &at));
  POLYOP_RETURN_IF_ERROR(num_points.Allocate(members.count(), &sizes));
  if (voxel_num) (*voxel_num)[0] = static_cast<int32_t>(members.count());
  Describe(op.grid(), points.data(), columns, members, at.data(), sizes.data());
  return CopyPoints(context, reinterpret_cast<const Word*>(points.data()), columns, members, members.count(),
                    op.max_num_points * columns, reinterpret_cast<Word*>(voxel_data.data()));
}

template <class T>
Status VoxelizeClouds(const HardVoxelize& op, const Context& context, Tensor<const T, 3> points, Tensor<T, 4> voxels,
                      Tensor<int32_t, 3> coors, Tensor<int32_t, 2> num_points,
                      std::optional<Tensor<int32_t, 1>> voxel_num) {
  using Word = WordOf<T>;
  const int64_t count = points.dim(1), columns = points.dim(2), row = op.max_num_points * columns;
  const Scratch<int32_t> cells = context.Allocate<int32_t>(count);
  VoxelMembers members(context, count, op.max_voxels);
  if (!cells) return Internal("out of memory: cells of ", count, " points");
  for (int64_t b = 0; b < points.dim(0); ++b) {
    const T* const from = points.data() + b * count * columns;
    POLYOP_RETURN_IF_ERROR(FindMembers(op, context, from, count, columns, cells.data(), &members));
    const int64_t opened = members.count(), left = op.max_voxels - opened;
    auto* const to = reinterpret_cast<Word*>(voxels.data()) + b * op.max_voxels * row;
    int32_t* const at = coors.data() + b * op.max_voxels * 3;
    int32_t* const sizes = num_points.data() + b * op.max_voxels;
    if (voxel_num) (*voxel_num)[b] = static_cast<int32_t>(opened);
    Describe(op.grid(), from, columns, members, at, sizes);
    POLYOP_RETURN_IF_ERROR(
        CopyPoints(context, reinterpret_cast<const Word*>(from), columns, members, op.max_voxels, row, to));
    std::fill_n(at + 3 * opened, 3 * left, -1);
    std::fill_n(sizes + opened, left, 0);
  }
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(HardVoxelize, VoxelizeCloud, float, Half, BFloat16);
POLYOP_CPU_KERNELS(HardVoxelize, VoxelizeClouds, float, Half, BFloat16);
}  // namespace polyop
#endif
