// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/voxels/dynamic_voxelize/dynamic_voxelize_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/voxels/cells-inl.h"
#include "ops/voxels/dynamic_voxelize/dynamic_voxelize.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status DynamicVoxelizeCpu(const DynamicVoxelize& op, const Context& context, Tensor<const T, 2> points,
                          Tensor<int32_t, 2> coors) {
  const int64_t count = points.dim(0), columns = points.dim(1);
  const CellGrid grid = op.grid();
  context.ParallelFor((count + kCellBlock - 1) / kCellBlock, 16, [&](int64_t first, int64_t last) HWY_ATTR {
    const hn::ScalableTag<int32_t> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    CellBlock block;
    for (int64_t begin = first * kCellBlock; begin < std::min(count, last * kCellBlock); begin += kCellBlock) {
      const int64_t size = std::min(kCellBlock, count - begin);
      FindCells(grid, points.data() + begin * columns, size, columns, block);
      int32_t* const to = coors.data() + 3 * begin;
      int64_t n = 0;
      for (; n + lanes <= size; n += lanes) {
        hn::StoreInterleaved3(hn::Load(d, block.cell[2] + n), hn::Load(d, block.cell[1] + n),
                              hn::Load(d, block.cell[0] + n), d, to + 3 * n);
      }
      for (; n < size; ++n) {
        for (int a = 0; a < 3; ++a) to[3 * n + a] = block.cell[2 - a][n];
      }
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(DynamicVoxelize, DynamicVoxelizeCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
