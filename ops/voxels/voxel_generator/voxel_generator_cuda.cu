// SPDX-License-Identifier: Apache-2.0
#include "ops/voxels/voxel_generator/pillar_features.h"
#include "ops/voxels/voxel_generator/voxel_generator.h"
#include "ops/voxels/voxel_members_cuda.h"

namespace polyop {
namespace {

// Clamps a num_points out of range to the existing points.
template <class T, class I>
Status VoxelGeneratorCuda(const VoxelGenerator& op, const CudaContext& cuda, Tensor<const T, 3> points,
                          Tensor<const I, 1> num_points, Tensor<T, 4> voxels, Tensor<int32_t, 3> coords,
                          Tensor<int32_t, 1> num_pillar) {
  const int64_t clouds = points.dim(0), max_points = points.dim(1), components = points.dim(2);
  const int64_t features = op.voxel_feature_num, slots = op.max_num_points_per_voxel;
  const CellGrid grid = op.grid();
  const T* const from = points.data();
  const I* const num = num_points.data();
  T* const to = voxels.data();
  int32_t *const cells = coords.data(), *const counts = num_pillar.data();
  const float z_size = op.voxel_size[2];
  const Divider by_cloud(max_points), by_slots(slots);
  VoxelMembersCuda members;
  POLYOP_RETURN_IF_ERROR(VoxelMembersCuda::Find(
      cuda, clouds, max_points, grid.total(), op.max_voxels, slots,
      [=] POLYOP_DEVICE(int64_t i) {
        int64_t in_cloud;
        const int64_t n = by_cloud.Split(i, &in_cloud);
        return in_cloud < num[n] ? grid.CellOf(from + i * components) : kNoCell;
      },
      &members));
  Pillar* const pillars = cuda.Allocate<Pillar>(clouds * op.max_voxels);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, clouds * op.max_voxels, [=] POLYOP_DEVICE(int64_t v) {
    Pillar pillar{};
    if (members.sizes[v] > 0) {
      pillar = Pillar::Of(grid, z_size, members.sizes[v],
                          [&](int64_t k) { return from + members.PointOf(v, k) * components; });
    }
    pillars[v] = pillar;
    for (int a = 0; a < 4; ++a) cells[4 * v + a] = a < 2 ? 0 : pillar.cell[3 - a];
  }));
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, clouds * op.max_voxels * slots, [=] POLYOP_DEVICE(int64_t i) {
    int64_t k;
    const int64_t v = by_slots.Split(i, &k), point = members.PointOf(v, k);
    if (point >= 0) return pillars[v].Describe(from + point * components, components, features, to + i * features);
    for (int64_t c = 0; c < features; ++c) to[i * features + c] = FromFloat<T>(0.0f);
  }));
  return ForEach(cuda, clouds, [=] POLYOP_DEVICE(int64_t n) { counts[n] = static_cast<int32_t>(members.opened[n]); });
}

POLYOP_CUDA_KERNELS(VoxelGenerator, VoxelGeneratorCuda, (float, int32_t), (Half, int32_t), (BFloat16, int32_t),
                    (float, int64_t), (Half, int64_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
