// SPDX-License-Identifier: Apache-2.0
// Gradients of BEV pooling on the GPU.
#pragma once

#include "kernels/cuda/atomic_add.h"
#include "ops/bev/bev_sums_cuda.h"

namespace polyop {

/// The cell of a rank of 'ranks_bev' at which an interval begins.
template <class I>
struct CellOfRanks {
  const I *ranks, *starts;

  POLYOP_HD int64_t operator()(int64_t j) const { return int64_t{ranks[starts[j]]}; }
};

/// The inputs of the gradients.
template <class T, class I>
struct BevPoolGrads {
  BevIntervals<I> intervals;
  CellOfRanks<I> cell_of;
  const int64_t* owner;
  const I *ranks_depth, *ranks_feat;
  const T *grad, *depth, *feat;
  int64_t cells, depths, pixels, channels;

  POLYOP_HD int64_t Cell(int64_t j) const { return OwnedCell(intervals, j, cells, cell_of, owner); }
};

/// The gradient of the features: each thread adds one channel of an interval's cell to the pixels of its ranks. A rank
/// outside of its tensor is skipped.
template <class T, class I>
Status BevFeatureGradientCuda(const CudaContext& cuda, const BevPoolGrads<T, I>& of, T* grad_feat) {
  const Divider by_channels(of.channels);
  return SumAtomically(cuda, 1, of.pixels, of.channels, grad_feat, [&](const ChannelSums& sums) {
    return ForEach(cuda, of.intervals.count * of.channels, [=] POLYOP_DEVICE(int64_t i) {
      int64_t c;
      const int64_t j = by_channels.Split(i, &c), cell = of.Cell(j);
      if (cell < 0) return;
      const float grad = ToFloat(of.grad[cell * of.channels + c]);
      const int64_t begin = of.intervals.starts[j], end = begin + of.intervals.lengths[j];
      for (int64_t r = begin; r < end; ++r) {
        const int64_t at = of.ranks_depth[r], pixel = of.ranks_feat[r];
        if (at < 0 || at >= of.depths || !sums.Has(pixel)) continue;
        const float weight = ToFloat(of.depth[at]);
        if (weight != 0) AtomicAdd(sums.Plane(0, pixel) + c, grad * weight);
      }
    });
  });
}

/// The gradient of the depths: for each rank the scalar product of its cell's gradient and its pixel's features. Each
/// block has an interval, and each group of 32 threads computes the product of a rank.
template <class T, class I>
Status BevDepthGradientCuda(const CudaContext& cuda, const BevPoolGrads<T, I>& of, T* grad_depth) {
  constexpr int kThreads = 128, kLanes = 32, kRanks = kThreads / kLanes;
  return SumAtomically(cuda, 1, of.depths, 1, grad_depth, [&](const ChannelSums& sums) {
    return ForBlocks(cuda, of.intervals.count, kThreads, kThreads * 4, [=] POLYOP_DEVICE(Block& block) {
      float* const parts = block.Shared<float>(kThreads);
      const int64_t j = block.index, cell = of.Cell(j);
      if (cell < 0) return;
      const T* const grad = of.grad + cell * of.channels;
      const int64_t begin = of.intervals.starts[j], end = begin + of.intervals.lengths[j];
      for (int64_t first = begin; first < end; first += kRanks) {
        block.ForThreads([&](int t) {
          const int64_t r = first + t / kLanes, pixel = r < end ? int64_t{of.ranks_feat[r]} : -1;
          parts[t] = 0;
          if (pixel < 0 || pixel >= of.pixels) return;
          const T* const feat = of.feat + pixel * of.channels;
          for (int64_t c = t % kLanes; c < of.channels; c += kLanes) parts[t] += ToFloat(grad[c]) * ToFloat(feat[c]);
        });
        block.ForThreads([&](int t) {
          const int64_t r = first + t, at = t < kRanks && r < end ? int64_t{of.ranks_depth[r]} : -1;
          if (!sums.Has(at)) return;
          float product = 0;
          for (int lane = 0; lane < kLanes; ++lane) product += parts[t * kLanes + lane];
          AtomicAdd(sums.Plane(0, at), product);
        });
      }
    });
  });
}

template <class Op, class T, class I, int kRank>
Status PoolBevBackwardCuda(const Op&, const CudaContext& cuda, Tensor<const T, kRank> grad_bev,
                           Tensor<const T, 4> depth, Tensor<const T, 4> feat, Tensor<const I, 1> ranks_depth,
                           Tensor<const I, 1> ranks_feat, Tensor<const I, 1> ranks_bev,
                           Tensor<const I, 1> interval_starts, Tensor<const I, 1> interval_lengths,
                           std::optional<Tensor<T, 4>> grad_depth, std::optional<Tensor<T, 4>> grad_feat) {
  const int64_t channels = feat.dim(3), cells = channels == 0 ? 0 : grad_bev.size() / channels;
  const BevIntervals<I> intervals{interval_starts.data(), interval_lengths.data(), interval_starts.dim(0),
                                  ranks_bev.dim(0)};
  const CellOfRanks<I> cell_of{ranks_bev.data(), interval_starts.data()};
  const int64_t* owner = nullptr;
  POLYOP_RETURN_IF_ERROR(FindOwnersCuda(cuda, intervals, cells, cell_of, &owner));
  const BevPoolGrads<T, I> of{intervals,
                              cell_of,
                              owner,
                              ranks_depth.data(),
                              ranks_feat.data(),
                              grad_bev.data(),
                              depth.data(),
                              feat.data(),
                              cells,
                              depth.size(),
                              feat.dim(0) * feat.dim(1) * feat.dim(2),
                              channels};
  if (grad_feat) POLYOP_RETURN_IF_ERROR(BevFeatureGradientCuda<T>(cuda, of, grad_feat->data()));
  return grad_depth ? BevDepthGradientCuda<T>(cuda, of, grad_depth->data()) : Status::Ok();
}

}  // namespace polyop
