// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/voxels/dynamic_voxelize/dynamic_voxelize.h"

namespace polyop {
namespace {

template <class T>
Status DynamicVoxelizeCuda(const DynamicVoxelize& op, const CudaContext& cuda, Tensor<const T, 2> points,
                           Tensor<int32_t, 2> coors) {
  const CellGrid grid = op.grid();
  const T* const from = points.data();
  int32_t* const to = coors.data();
  const int64_t columns = points.dim(1);
  return ForEach(cuda, points.dim(0), [=] POLYOP_DEVICE(int64_t i) {
    const T* const p = from + i * columns;
    int32_t at[3];
    const bool inside = grid.Find(ToFloat(p[0]), ToFloat(p[1]), ToFloat(p[2]), at);
    for (int a = 0; a < 3; ++a) to[3 * i + a] = inside ? at[2 - a] : kNoCell;
  });
}

POLYOP_CUDA_KERNELS(DynamicVoxelize, DynamicVoxelizeCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
