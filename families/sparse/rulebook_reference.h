// The pairs of a sparse convolution, found by asking for each output and each place of the filter. For references.
#pragma once

#include <array>
#include <map>
#include <set>
#include <vector>

#include "families/sparse/sparse_rule.h"
#include "families/sparse/sparse_values.h"

namespace polyop {

struct ReferenceRulebook {
  using Place = std::array<int64_t, 4>;  // (picture, z, y, x)
  std::vector<Place> outputs;
  std::vector<std::vector<int32_t>> pairs;  // [offset][output], -1 for none
};

template <class I>
Status MakeReferenceRulebook(const SparseConvRule& op, const I* indices, int64_t count, ReferenceRulebook* book) {
  using Place = ReferenceRulebook::Place;
  const SparseGrid grid = op.Grid();
  POLYOP_RETURN_IF_ERROR(CheckCells(grid, indices, count));
  std::vector<Place> voxels;
  std::map<Place, int32_t> rows;
  for (int64_t n = 0; n < count; ++n) {
    const I* const row = indices + 4 * n;
    voxels.push_back({row[0], row[1], row[2], row[3]});
    rows.emplace(voxels.back(), static_cast<int32_t>(n));  // keeps the first
  }

  // What i = o * stride - padding + r * dilation says of the wide and the narrow side of the filter.
  const auto wide = [&](const Place& narrow, const Place& r) {
    Place place = narrow;
    for (size_t a = 0; a < 3; ++a) {
      place[a + 1] = narrow[a + 1] * grid.stride[a] - grid.padding[a] + r[a + 1] * grid.dilation[a];
    }
    return place;
  };
  std::vector<Place> offsets;
  for (int64_t z = 0; z < op.ksize[0]; ++z) {
    for (int64_t y = 0; y < op.ksize[1]; ++y) {
      for (int64_t x = 0; x < op.ksize[2]; ++x) offsets.push_back({0, z, y, x});
    }
  }
  if (grid.subm) {
    book->outputs = voxels;
  } else {
    std::set<Place> found;
    for (const Place& voxel : voxels) {
      for (const Place& r : offsets) {
        Place place = voxel;
        if (grid.transpose) {
          place = wide(voxel, r);
        } else {
          bool whole = true;
          for (size_t a = 0; a < 3; ++a) {
            const int64_t steps = voxel[a + 1] + grid.padding[a] - r[a + 1] * grid.dilation[a];
            whole = whole && steps % grid.stride[a] == 0 && steps >= 0;
            place[a + 1] = steps / grid.stride[a];
          }
          if (!whole) continue;
        }
        bool inside = true;
        for (size_t a = 0; a < 3; ++a) inside = inside && place[a + 1] >= 0 && place[a + 1] < grid.out[a];
        if (inside) found.insert(place);
      }
    }
    book->outputs.assign(found.begin(), found.end());
  }

  for (const Place& r : offsets) {
    std::vector<int32_t>& row = book->pairs.emplace_back(book->outputs.size(), -1);
    if (grid.transpose) {
      std::map<Place, int32_t> fed;
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
void WritePlaces(const std::vector<ReferenceRulebook::Place>& places, I* out_indices) {
  for (const ReferenceRulebook::Place& place : places) {
    for (const int64_t coordinate : place) *out_indices++ = static_cast<I>(coordinate);
  }
}

}  // namespace polyop
