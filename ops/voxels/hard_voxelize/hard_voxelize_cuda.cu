// SPDX-License-Identifier: Apache-2.0
#include "core/words.h"
#include "ops/voxels/hard_voxelize/hard_voxelize.h"
#include "ops/voxels/voxel_members_cuda.h"

namespace polyop {
namespace {

// The outputs for the voxels of all clouds, with `rows` voxels per cloud. Voxels that were not created are filled, too,
// except where the caller cuts them off.
template <class T>
struct Voxels {
  T* voxels;
  int32_t *coors, *num_points, *voxel_num;
  int64_t rows;
};

template <class T>
Status Voxelize(const HardVoxelize& op, const CudaContext& cuda, const T* points, int64_t clouds, int64_t count,
                int64_t columns, const Voxels<T>& to, int64_t* const* counts) {
  using Word = WordOf<T>;
  const CellGrid grid = op.grid();
  VoxelMembersCuda members;
  POLYOP_RETURN_IF_ERROR(VoxelMembersCuda::Find(
      cuda, clouds, count, grid.total(), to.rows, op.max_num_points,
      [=] POLYOP_DEVICE(int64_t i) { return grid.CellOf(points + i * columns); }, &members));
  const Divider by_columns(columns), by_slots(op.max_num_points);
  const auto* const from = reinterpret_cast<const Word*>(points);
  auto* const voxels = reinterpret_cast<Word*>(to.voxels);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, clouds * to.rows * op.max_num_points * columns, [=] POLYOP_DEVICE(int64_t i) {
    int64_t c, k;
    const int64_t v = by_slots.Split(by_columns.Split(i, &c), &k), point = members.PointOf(v, k);
    voxels[i] = point < 0 ? Word{0} : from[point * columns + c];
  }));
  int32_t *const coors = to.coors, *const num_points = to.num_points, *const voxel_num = to.voxel_num;
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, clouds * to.rows, [=] POLYOP_DEVICE(int64_t v) {
    const int64_t first = members.PointOf(v, 0);
    int32_t at[3] = {-1, -1, -1};
    if (first >= 0) {
      const T* const p = points + first * columns;
      grid.Find(ToFloat(p[0]), ToFloat(p[1]), ToFloat(p[2]), at);
    }
    for (int a = 0; a < 3; ++a) coors[3 * v + a] = at[2 - a];
    num_points[v] = members.sizes[v];
  }));
  int64_t* const of_voxels = counts == nullptr ? nullptr : counts[0];
  int64_t* const of_coors = counts == nullptr ? nullptr : counts[1];
  int64_t* const of_sizes = counts == nullptr ? nullptr : counts[2];
  return ForEach(cuda, clouds, [=] POLYOP_DEVICE(int64_t b) {
    if (voxel_num != nullptr) voxel_num[b] = static_cast<int32_t>(members.opened[b]);
    if (of_voxels != nullptr) *of_voxels = *of_coors = *of_sizes = members.opened[b];
  });
}

template <class T>
Status VoxelizeCloud(const HardVoxelize& op, const CudaContext& cuda, Tensor<const T, 2> points, Pending<T, 3> voxels,
                     Pending<int32_t, 2> coors, Pending<int32_t, 1> num_points,
                     std::optional<Tensor<int32_t, 1>> voxel_num) {
  const int64_t max_voxels = std::min(points.dim(0), op.max_voxels);
  Tensor<T, 3> voxel_data;
  Tensor<int32_t, 2> at;
  Tensor<int32_t, 1> sizes;
  int64_t* counts[3];
  POLYOP_RETURN_IF_ERROR(voxels.AllocateUpperBound(max_voxels, &voxel_data, &counts[0]));
  POLYOP_RETURN_IF_ERROR(coors.AllocateUpperBound(max_voxels, &at, &counts[1]));
  POLYOP_RETURN_IF_ERROR(num_points.AllocateUpperBound(max_voxels, &sizes, &counts[2]));
  return Voxelize(
      op, cuda, points.data(), 1, points.dim(0), points.dim(1),
      Voxels<T>{voxel_data.data(), at.data(), sizes.data(), voxel_num ? voxel_num->data() : nullptr, max_voxels},
      counts);
}

template <class T>
Status VoxelizeClouds(const HardVoxelize& op, const CudaContext& cuda, Tensor<const T, 3> points, Tensor<T, 4> voxels,
                      Tensor<int32_t, 3> coors, Tensor<int32_t, 2> num_points,
                      std::optional<Tensor<int32_t, 1>> voxel_num) {
  return Voxelize(
      op, cuda, points.data(), points.dim(0), points.dim(1), points.dim(2),
      Voxels<T>{voxels.data(), coors.data(), num_points.data(), voxel_num ? voxel_num->data() : nullptr, op.max_voxels},
      nullptr);
}

POLYOP_CUDA_KERNELS(HardVoxelize, VoxelizeCloud, float, Half, BFloat16);
POLYOP_CUDA_KERNELS(HardVoxelize, VoxelizeClouds, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
