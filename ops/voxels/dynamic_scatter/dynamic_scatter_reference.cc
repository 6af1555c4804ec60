// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "ops/voxels/dynamic_scatter/dynamic_scatter.h"

namespace polyop {
namespace {

template <class I>
Status DynamicScatterReference(const DynamicScatter& op, const Context&, Tensor<const double, 2> feats,
                               Tensor<const I, 2> coors, Pending<double, 2> voxel_feats, Pending<I, 2> voxel_coors,
                               Tensor<int32_t, 1> point2voxel, Pending<int32_t, 1> counts) {
  const int64_t columns = coors.dim(1), channels = feats.dim(1);
  std::map<std::vector<I>, std::vector<int64_t>> voxels;
  for (int64_t i = 0; i < coors.dim(0); ++i) {
    const std::vector<I> row(coors.data() + i * columns, coors.data() + (i + 1) * columns);
    point2voxel[i] = -1;
    if (std::all_of(row.begin(), row.end(), [](I c) { return c >= 0; })) voxels[row].push_back(i);
  }
  const auto count = static_cast<int64_t>(voxels.size());
  Tensor<double, 2> reduced;
  Tensor<I, 2> cells;
  Tensor<int32_t, 1> sizes;
  POLYOP_RETURN_IF_ERROR(voxel_feats.Allocate(count, &reduced));
  POLYOP_RETURN_IF_ERROR(voxel_coors.Allocate(count, &cells));
  POLYOP_RETURN_IF_ERROR(counts.Allocate(count, &sizes));
  int64_t v = 0;
  for (const auto& [row, points] : voxels) {
    std::copy(row.begin(), row.end(), cells.data() + v * columns);
    sizes[v] = static_cast<int32_t>(points.size());
    for (int64_t i : points) point2voxel[i] = static_cast<int32_t>(v);
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0, max = -INFINITY;
      for (int64_t i : points) {
        const double x = feats[i * channels + c];
        sum += x;
        max = std::isnan(x) || std::isnan(max) ? NAN : std::max(max, x);
      }
      const double mean = sum / static_cast<double>(points.size());
      reduced[v * channels + c] = op.reduce_type == DynamicScatter::Reduce::kMax    ? max
                                  : op.reduce_type == DynamicScatter::Reduce::kMean ? mean
                                                                                    : sum;
    }
    ++v;
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(DynamicScatter, DynamicScatterReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
