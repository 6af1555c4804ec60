// SPDX-License-Identifier: Apache-2.0
// Finds the cells of points, a vector of points at a time. Compiled once per instruction set; include it from a kernel
// file.
#if defined(POLYOP_OPS_VOXELS_CELLS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_VOXELS_CELLS_INL_H_
#undef POLYOP_OPS_VOXELS_CELLS_INL_H_
#else
#define POLYOP_OPS_VOXELS_CELLS_INL_H_
#endif

#include "kernels/cpu/simd.h"
#include "ops/voxels/cell_grid.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kCellBlock = 512;  // number of points whose coordinates and cells fit the L1 cache

/// Coordinates of a block of points, and their cells along x, y and z.
struct CellBlock {
  HWY_ALIGN float coordinate[3][kCellBlock];
  HWY_ALIGN int32_t cell[3][kCellBlock];
};

/// Reads the coordinates of `count` points, whose rows have `columns` numbers, padded with 0 to whole vectors.
template <class T>
void ReadCoordinates(const T* points, int64_t count, int64_t columns, CellBlock& block) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t n = 0;
  if constexpr (std::is_same_v<T, float>) {
    hn::Vec<decltype(d)> x, y, z, w;
    for (; columns <= 4 && n + lanes <= count; n += lanes) {
      if (columns == 3) hn::LoadInterleaved3(d, points + n * 3, x, y, z);
      if (columns == 4) hn::LoadInterleaved4(d, points + n * 4, x, y, z, w);
      hn::Store(x, d, block.coordinate[0] + n);
      hn::Store(y, d, block.coordinate[1] + n);
      hn::Store(z, d, block.coordinate[2] + n);
    }
  }
  for (; n < count; ++n) {
    for (int a = 0; a < 3; ++a) block.coordinate[a][n] = ToFloat(points[n * columns + a]);
  }
  for (; n % lanes != 0; ++n) {
    for (int a = 0; a < 3; ++a) block.coordinate[a][n] = 0;
  }
}

/// Computes the cells of `count` points along each axis, or kNoCell along all axes if there is none.
template <class T>
void FindCells(const CellGrid& grid, const T* points, int64_t count, int64_t columns, CellBlock& block) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  ReadCoordinates(points, count, columns, block);
  for (int64_t n = 0; n < count; n += lanes) {
    hn::Vec<decltype(d)> cell[3];
    auto inside = hn::Eq(hn::Zero(d), hn::Zero(d));
    for (int a = 0; a < 3; ++a) {
      const auto p = hn::Load(d, block.coordinate[a] + n);
      cell[a] = hn::Floor(hn::Div(hn::Sub(p, hn::Set(d, grid.low[a])), hn::Set(d, grid.size[a])));
      const auto in_range = hn::And(hn::Ge(p, hn::Set(d, grid.from[a])), hn::Lt(p, hn::Set(d, grid.to[a])));
      const auto in_grid =
          hn::And(hn::Ge(cell[a], hn::Zero(d)), hn::Lt(cell[a], hn::Set(d, static_cast<float>(grid.cells[a]))));
      inside = hn::And(inside, hn::And(in_range, in_grid));
    }
    for (int a = 0; a < 3; ++a) {
      const auto whole = hn::ConvertTo(di, hn::IfThenElseZero(inside, cell[a]));
      hn::Store(hn::IfThenElse(hn::RebindMask(di, inside), whole, hn::Set(di, kNoCell)), di, block.cell[a] + n);
    }
  }
}

/// Computes the flat indices of the cells of any number of points, in parallel.
template <class T>
void NumberCells(const Context& context, const CellGrid& grid, const T* points, int64_t count, int64_t columns,
                 int32_t* cells) {
  context.ParallelFor((count + kCellBlock - 1) / kCellBlock, 16, [&](int64_t first, int64_t last) HWY_ATTR {
    const hn::ScalableTag<int32_t> d;
    CellBlock block;
    for (int64_t begin = first * kCellBlock; begin < std::min(count, last * kCellBlock); begin += kCellBlock) {
      const int64_t size = std::min(kCellBlock, count - begin), lanes = static_cast<int64_t>(hn::Lanes(d));
      FindCells(grid, points + begin * columns, size, columns, block);
      for (int64_t n = 0; n < size; n += lanes) {
        const auto x = hn::Load(d, block.cell[0] + n), y = hn::Load(d, block.cell[1] + n);
        const auto z = hn::Load(d, block.cell[2] + n);
        const auto row = hn::Add(hn::Mul(z, hn::Set(d, grid.cells[1])), y);
        const auto number = hn::Add(hn::Mul(row, hn::Set(d, grid.cells[0])), x);
        const auto cell = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), x, number);
        hn::StoreN(cell, d, cells + begin + n, static_cast<size_t>(std::min(lanes, size - n)));
      }
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
