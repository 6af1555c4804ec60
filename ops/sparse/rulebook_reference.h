// SPDX-License-Identifier: Apache-2.0
// The pairs of a sparse convolution, found by testing each output and each offset of the filter: for reference kernels
// only.
#pragma once

#include <array>
#include <map>
#include <set>
#include <vector>

#include "ops/sparse/sparse_rule.h"
#include "ops/sparse/sparse_values.h"

namespace polyop {

struct ReferenceRulebook {
  using Cell = std::array<int64_t, 4>;  // (image, z, y, x)
  std::vector<Cell> outputs;
  std::vector<std::vector<int32_t>> pairs;  // [offset][output], -1 for none
};

template <class I>
Status MakeReferenceRulebook(const SparseConvRule& op, const I* indices, int64_t count, ReferenceRulebook* book) {
  using Cell = ReferenceRulebook::Cell;
  const SparseGrid grid = op.Grid();
  POLYOP_RETURN_IF_ERROR(CheckCells(grid, indices, count));
  std::vector<Cell> voxels;
  std::map<Cell, int32_t> rows;
  for (int64_t n = 0; n < count; ++n) {
    const I* const row = indices + 4 * n;
    voxels.push_back({row[0], row[1], row[2], row[3]});
    rows.emplace(voxels.back(), static_cast<int32_t>(n));  // keeps the first
  }

  // Returns wide = narrow * stride - padding + r * dilation. The narrow side is the output, or the input if transposed.
  const auto wide = [&](const Cell& narrow, const Cell& r) {
    Cell cell = narrow;
    for (size_t a = 0; a < 3; ++a) {
      cell[a + 1] = narrow[a + 1] * grid.stride[a] - grid.padding[a] + r[a + 1] * grid.dilation[a];
    }
    return cell;
  };
  std::vector<Cell> offsets;
  for (int64_t z = 0; z < op.ksize[0]; ++z) {
    for (int64_t y = 0; y < op.ksize[1]; ++y) {
      for (int64_t x = 0; x < op.ksize[2]; ++x) offsets.push_back({0, z, y, x});
    }
  }
  if (grid.subm) {
    book->outputs = voxels;
  } else {
    std::set<Cell> found;
    for (const Cell& voxel : voxels) {
      for (const Cell& r : offsets) {
        Cell cell = voxel;
        if (grid.transpose) {
          cell = wide(voxel, r);
        } else {
          bool whole = true;
          for (size_t a = 0; a < 3; ++a) {
            const int64_t steps = voxel[a + 1] + grid.padding[a] - r[a + 1] * grid.dilation[a];
            whole = whole && steps % grid.stride[a] == 0 && steps >= 0;
            cell[a + 1] = steps / grid.stride[a];
          }
          if (!whole) continue;
        }
        bool inside = true;
        for (size_t a = 0; a < 3; ++a) inside = inside && cell[a + 1] >= 0 && cell[a + 1] < grid.out[a];
        if (inside) found.insert(cell);
      }
    }
    book->outputs.assign(found.begin(), found.end());
  }

  for (const Cell& r : offsets) {
    std::vector<int32_t>& row = book->pairs.emplace_back(book->outputs.size(), -1);
    if (grid.transpose) {
      std::map<Cell, int32_t> fed;
      for (const auto& [voxel, n] : rows) fed.emplace(wide(voxel, r), n);
      for (size_t o = 0; o < row.size(); ++o) {
        if (const auto at = fed.find(book->outputs[o]); at != fed.end()) row[o] = at->second;
      }
    } else {
      for (size_t o = 0; o < row.size(); ++o) {
        if (const auto at = rows.find(wide(book->outputs[o], r)); at != rows.end()) row[o] = at->second;
      }
    }
  }
  if (grid.subm) {
    std::vector<int32_t>& centre = book->pairs[book->pairs.size() / 2];
    for (size_t o = 0; o < centre.size(); ++o) centre[o] = static_cast<int32_t>(o);
  }
  return Status::Ok();
}

template <class I>
void WriteCells(const std::vector<ReferenceRulebook::Cell>& cells, I* out_indices) {
  for (const ReferenceRulebook::Cell& cell : cells) {
    for (const int64_t coordinate : cell) *out_indices++ = static_cast<I>(coordinate);
  }
}

}  // namespace polyop
