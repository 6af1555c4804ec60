// SPDX-License-Identifier: Apache-2.0
// BEV pooling on the CPU: camera features, weighted by depth, are summed into the cells of a bird's eye view with any
// number of layers. Compiled once per instruction set; include it from a kernel file.

// Outside of the guards because Highway redefines its macros for each target.
#include "kernels/cpu/simd.h"
#include "ops/bev/bev_sums-inl.h"

#ifndef POLYOP_OPS_BEV_BEV_POOL_INL_H_
#define POLYOP_OPS_BEV_BEV_POOL_INL_H_

#include "ops/bev/bev_owners.h"

namespace polyop {

/// The template arguments of a kernel: an operator, its types and its output's rank.
template <class OpType, class Element, class Index, int kOutputRank>
struct BevPoolTypes {
  using Op = OpType;
  using T = Element;
  using I = Index;
  static constexpr int kRank = kOutputRank;
};

}  // namespace polyop
#endif  // POLYOP_OPS_BEV_BEV_POOL_INL_H_

#if defined(POLYOP_OPS_BEV_BEV_POOL_TARGET_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_BEV_BEV_POOL_TARGET_H_
#undef POLYOP_OPS_BEV_BEV_POOL_TARGET_H_
#else
#define POLYOP_OPS_BEV_BEV_POOL_TARGET_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Features of pixels, each weighted by a depth.
template <class T, class I>
struct WeighedPixels {
  const T* depth;
  const T* feat;
  const I* ranks_depth;
  const I* ranks_feat;
  int64_t channels;

  const T* Row(int64_t r) const { return feat + ranks_feat[r] * channels; }
  template <class D>
  HWY_INLINE hn::Vec<D> Weigh(D d, int64_t r, hn::Vec<D> features) const {
    return hn::Mul(hn::Set(d, ToFloat(depth[ranks_depth[r]])), features);
  }
};

// Requires: the view has channels. Kernels are not called when the output is empty.
template <class Types>
Status PoolBev(const typename Types::Op&, const Context& context, Tensor<const typename Types::T, 4> depth,
               Tensor<const typename Types::T, 4> feat, Tensor<const typename Types::I, 1> ranks_depth,
               Tensor<const typename Types::I, 1> ranks_feat, Tensor<const typename Types::I, 1> ranks_bev,
               Tensor<const typename Types::I, 1> starts, Tensor<const typename Types::I, 1> lengths,
               Tensor<typename Types::T, Types::kRank> bev) {
  using T = typename Types::T;
  using I = typename Types::I;
  const int64_t channels = feat.dim(3), cells = bev.size() / channels;
  const BevIntervals<I> intervals{starts.data(), lengths.data(), starts.dim(0), ranks_bev.dim(0)};
  const Scratch<int32_t> owner = context.Allocate<int32_t>(cells);
  if (!owner) return Internal("out of memory: ", cells, " cells");
  const int64_t pixels = feat.dim(0) * feat.dim(1) * feat.dim(2);
  POLYOP_RETURN_IF_ERROR(FindRankOwners(context, intervals, ranks_depth, ranks_feat, ranks_bev, depth.size(), pixels,
                                        cells, owner.data()));
  const WeighedPixels<T, I> rows{depth.data(), feat.data(), ranks_depth.data(), ranks_feat.data(), channels};
  SumIntervals(context, rows, intervals, owner.data(), cells, channels, bev.data());
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
