// SPDX-License-Identifier: Apache-2.0
// BEV pooling by its definition: for reference kernels only.
#pragma once

#include <algorithm>

#include "core/context.h"
#include "ops/bev/bev_ranks.h"

namespace polyop {

template <class Op, class I, int kRank>
Status PoolBevReference(const Op&, const Context&, Tensor<const double, 4> depth, Tensor<const double, 4> feat,
                        Tensor<const I, 1> ranks_depth, Tensor<const I, 1> ranks_feat, Tensor<const I, 1> ranks_bev,
                        Tensor<const I, 1> interval_starts, Tensor<const I, 1> interval_lengths,
                        Tensor<double, kRank> bev) {
  const int64_t channels = feat.dim(3), pixels = feat.dim(0) * feat.dim(1) * feat.dim(2);
  const BevIntervals<I> intervals{interval_starts.data(), interval_lengths.data(), interval_starts.dim(0),
                                  ranks_bev.dim(0)};
  POLYOP_RETURN_IF_ERROR(intervals.Check());
  for (int64_t j = 0; j < intervals.count; ++j) {
    const int64_t first = interval_starts[j];
    if (interval_lengths[j] == 0) continue;
    POLYOP_RETURN_IF_ERROR(CheckCell(first, ranks_bev[first], bev.size() / channels));
  }
  POLYOP_RETURN_IF_ERROR(CheckRanks("ranks_depth", intervals, ranks_depth, depth.size()));
  POLYOP_RETURN_IF_ERROR(CheckRanks("ranks_feat", intervals, ranks_feat, pixels));
  std::fill_n(bev.data(), bev.size(), 0.0);
  for (int64_t j = 0; j < interval_starts.dim(0); ++j) {
    const int64_t start = interval_starts[j], length = interval_lengths[j];
    if (length == 0) continue;
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t r = start; r < start + length; ++r) {
        sum += depth[ranks_depth[r]] * feat[ranks_feat[r] * channels + c];
      }
      bev[ranks_bev[start] * channels + c] = sum;
    }
  }
  return Status::Ok();
}

}  // namespace polyop
