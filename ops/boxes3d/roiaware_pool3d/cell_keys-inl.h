// SPDX-License-Identifier: Apache-2.0
// The points in the cells of a box. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_BOXES3D_ROIAWARE_POOL3D_CELL_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_BOXES3D_ROIAWARE_POOL3D_CELL_KEYS_INL_H_
#undef POLYOP_OPS_BOXES3D_ROIAWARE_POOL3D_CELL_KEYS_INL_H_
#else
#define POLYOP_OPS_BOXES3D_ROIAWARE_POOL3D_CELL_KEYS_INL_H_
#endif

#include <algorithm>
#include <span>

#include "kernels/cpu/simd.h"
#include "ops/boxes3d/points_in_box-inl.h"
#include "ops/boxes3d/roiaware_pool3d/box_cells.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Sort key of a point in a box: its cell, then its index.
using CellKey = uint64_t;
constexpr CellKey CellKeyOf(int64_t cell, int64_t point) {
  return static_cast<CellKey>(cell) << 32 | static_cast<CellKey>(point);
}
constexpr int64_t CellOfKey(CellKey key) { return static_cast<int64_t>(key >> 32); }
constexpr int64_t PointOfKey(CellKey key) { return static_cast<int64_t>(key & 0xFFFFFFFF); }

// Writes the sorted keys of the points inside the box, and returns their number. `keys` has room for all points.
template <class T>
int64_t FindCellKeys(const BoxCells& cells, const PointColumns<T>& columns, const T* points, CellKey* keys) {
  int64_t inside = 0;
  columns.ForInside(cells.box, 0, [&](int64_t i) {
    keys[inside++] = CellKeyOf(cells.Of(points + 3 * i), i);
    return true;
  });
  std::sort(keys, keys + inside);
  return inside;
}

// Calls visit(cell, keys) for each cell with points, with the keys of at most its first `max_points` points.
template <class Visit>
void ForEachCell(std::span<const CellKey> keys, int64_t max_points, const Visit& visit) {
  if (max_points <= 0) return;
  for (size_t first = 0, last = 0; first < keys.size(); first = last) {
    const int64_t cell = CellOfKey(keys[first]);
    while (last < keys.size() && CellOfKey(keys[last]) == cell) ++last;
    visit(cell, keys.subspan(first, std::min(last - first, static_cast<size_t>(max_points))));
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
