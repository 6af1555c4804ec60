// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/voxels/voxel_generator/voxel_generator_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "core/words.h"
#include "kernels/cpu/simd.h"
#include "ops/voxels/cells-inl.h"
#include "ops/voxels/padded_rows-inl.h"
#include "ops/voxels/voxel_generator/pillar_features.h"
#include "ops/voxels/voxel_generator/voxel_generator.h"
#include "ops/voxels/voxel_generator/voxel_generator_values.h"
#include "ops/voxels/voxel_members.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Writes the pillars of one cloud, followed by zeros.
template <class T>
Status Describe(const VoxelGenerator& op, const Context& context, const T* points, int64_t components,
                const VoxelMembers& members, T* voxels, int32_t* coords) {
  using Word = WordOf<T>;
  const CellGrid grid = op.grid();
  const int64_t features = op.voxel_feature_num, row = op.max_num_points_per_voxel * features;
  return WritePaddedRows(context, op.max_voxels, row, reinterpret_cast<Word*>(voxels), [&](int64_t v, Word* at) {
    std::fill_n(coords + 4 * v, 4, 0);
    if (v >= members.count()) return at;
    const int64_t size = members.SizeOf(v);
    const int32_t* const pillar_points = members.points() + members.starts()[v];
    const auto point_of = [&](int64_t k) { return points + pillar_points[k] * components; };
    const Pillar pillar = Pillar::Of(grid, op.voxel_size[2], size, point_of);
    for (int64_t k = 0; k < size; ++k, at += features) {
      pillar.Describe(point_of(k), components, features, reinterpret_cast<T*>(at));
    }
    coords[4 * v + 2] = pillar.cell[1];
    coords[4 * v + 3] = pillar.cell[0];
    return at;
  });
}

template <class T, class I>
Status Generate(const VoxelGenerator& op, const Context& context, Tensor<const T, 3> points,
                Tensor<const I, 1> num_points, Tensor<T, 4> voxels, Tensor<int32_t, 3> coords,
                Tensor<int32_t, 1> num_pillar) {
  const int64_t max_points = points.dim(1), components = points.dim(2);
  const int64_t row = op.max_num_points_per_voxel * op.voxel_feature_num;
  const CellGrid grid = op.grid();
  POLYOP_RETURN_IF_ERROR(CheckNumPoints(num_points, max_points));
  const Scratch<int32_t> cells = context.Allocate<int32_t>(max_points);
  VoxelMembers members(context, max_points, op.max_voxels);
  if (!cells) return Internal("out of memory: cells of ", max_points, " points");
  for (int64_t n = 0; n < points.dim(0); ++n) {
    const T* const from = points.data() + n * max_points * components;
    NumberCells(context, grid, from, int64_t{num_points[n]}, components, cells.data());
    POLYOP_RETURN_IF_ERROR(
        members.Find(cells.data(), int64_t{num_points[n]}, grid.total(), op.max_voxels, op.max_num_points_per_voxel));
    POLYOP_RETURN_IF_ERROR(Describe(op, context, from, components, members, voxels.data() + n * op.max_voxels * row,
                                    coords.data() + n * op.max_voxels * 4));
    num_pillar[n] = static_cast<int32_t>(members.count());
  }
  return Status::Ok();
}

// Separate entry points for 32-bit and 64-bit num_points, because a dispatch table takes templates of one argument.
template <class T>
Status GenerateI32(const VoxelGenerator& op, const Context& context, Tensor<const T, 3> points,
                   Tensor<const int32_t, 1> num_points, Tensor<T, 4> voxels, Tensor<int32_t, 3> coords,
                   Tensor<int32_t, 1> num_pillar) {
  return Generate(op, context, points, num_points, voxels, coords, num_pillar);
}
template <class T>
Status GenerateI64(const VoxelGenerator& op, const Context& context, Tensor<const T, 3> points,
                   Tensor<const int64_t, 1> num_points, Tensor<T, 4> voxels, Tensor<int32_t, 3> coords,
                   Tensor<int32_t, 1> num_pillar) {
  return Generate(op, context, points, num_points, voxels, coords, num_pillar);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(VoxelGenerator, GenerateI32, float, Half, BFloat16);
POLYOP_CPU_KERNELS(VoxelGenerator, GenerateI64, float, Half, BFloat16);
}  // namespace polyop
#endif
