// SPDX-License-Identifier: Apache-2.0
// Gradients of BEV pooling by their definition: for reference kernels only.
#pragma once

#include <algorithm>
#include <map>

#include "core/context.h"
#include "ops/bev/bev_ranks.h"

namespace polyop {

template <class Op, class I, int kRank>
Status PoolBevBackwardReference(const Op&, const Context&, Tensor<const double, kRank> grad_bev,
                                Tensor<const double, 4> depth, Tensor<const double, 4> feat,
                                Tensor<const I, 1> ranks_depth, Tensor<const I, 1> ranks_feat,
                                Tensor<const I, 1> ranks_bev, Tensor<const I, 1> interval_starts,
                                Tensor<const I, 1> interval_lengths, std::optional<Tensor<double, 4>> grad_depth,
                                std::optional<Tensor<double, 4>> grad_feat) {
  const int64_t channels = feat.dim(3), pixels = feat.dim(0) * feat.dim(1) * feat.dim(2);
  if (grad_depth) std::fill_n(grad_depth->data(), depth.size(), 0.0);
  if (grad_feat) std::fill_n(grad_feat->data(), feat.size(), 0.0);
  if (channels == 0) return Status::Ok();
  const BevIntervals<I> intervals{interval_starts.data(), interval_lengths.data(), interval_starts.dim(0),
                                  ranks_bev.dim(0)};
  POLYOP_RETURN_IF_ERROR(intervals.Check());
  std::map<int64_t, int64_t> owners;  // the last interval of each cell
  for (int64_t j = 0; j < intervals.count; ++j) {
    const int64_t first = interval_starts[j];
    if (interval_lengths[j] == 0) continue;
    POLYOP_RETURN_IF_ERROR(CheckCell(first, ranks_bev[first], grad_bev.size() / channels));
    owners[ranks_bev[first]] = j;
  }
  POLYOP_RETURN_IF_ERROR(CheckRanks("ranks_depth", intervals, ranks_depth, depth.size()));
  POLYOP_RETURN_IF_ERROR(CheckRanks("ranks_feat", intervals, ranks_feat, pixels));
  for (const auto& [cell, j] : owners) {
    for (int64_t r = interval_starts[j]; r < interval_starts[j] + interval_lengths[j]; ++r) {
      const double weight = depth[ranks_depth[r]];
      for (int64_t c = 0; c < channels; ++c) {
        const double g = grad_bev[cell * channels + c];
        const int64_t at = ranks_feat[r] * channels + c;
        if (grad_depth) (*grad_depth)[ranks_depth[r]] += g * feat[at];
        if (grad_feat && weight != 0) (*grad_feat)[at] += g * weight;
      }
    }
  }
  return Status::Ok();
}

}  // namespace polyop
