// SPDX-License-Identifier: Apache-2.0
// BEV pooling on the GPU: camera features, weighted by depth, are summed into the cells of a bird's eye view with any
// number of layers.
#pragma once

#include "ops/bev/bev_sums_cuda.h"

namespace polyop {

/// A rank outside of its tensor sets the cell to NaN.
template <class Op, class T, class I, int kRank>
Status PoolBevCuda(const Op&, const CudaContext& cuda, Tensor<const T, 4> depth, Tensor<const T, 4> feat,
                   Tensor<const I, 1> ranks_depth, Tensor<const I, 1> ranks_feat, Tensor<const I, 1> ranks_bev,
                   Tensor<const I, 1> interval_starts, Tensor<const I, 1> interval_lengths, Tensor<T, kRank> bev) {
  const BevIntervals<I> intervals{interval_starts.data(), interval_lengths.data(), interval_starts.dim(0),
                                  ranks_bev.dim(0)};
  const int64_t depths = depth.size(), pixels = feat.dim(0) * feat.dim(1) * feat.dim(2), channels = feat.dim(3);
  const T *const weights = depth.data(), *const features = feat.data();
  const I *const of_depth = ranks_depth.data(), *const of_feat = ranks_feat.data(), *const of_bev = ranks_bev.data();
  return SumIntervalsCuda(
      cuda, intervals, bev.size() / channels, channels,
      [=] POLYOP_DEVICE(int64_t j) { return int64_t{of_bev[intervals.starts[j]]}; },
      [=] POLYOP_DEVICE(int64_t r, int64_t c) {
        const int64_t weight = of_depth[r], pixel = of_feat[r];
        const bool inside = weight >= 0 && weight < depths && pixel >= 0 && pixel < pixels;
        return inside ? ToFloat(weights[weight]) * ToFloat(features[pixel * channels + c]) : NAN;
      },
      bev.data());
}

}  // namespace polyop
