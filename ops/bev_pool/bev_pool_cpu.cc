#include <algorithm>

#include "ops/bev_pool/bev_pool.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/bev_pool/bev_pool_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/points/bev_sums-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/bev_pool/bev_pool_values.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Features of pixels, each weighed by a depth.
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

template <class T, class I>
Status Pool(const Context& context, Tensor<const T, 4> depth, Tensor<const T, 4> feat, Tensor<const I, 1> ranks_depth,
            Tensor<const I, 1> ranks_feat, Tensor<const I, 1> ranks_bev, Tensor<const I, 1> starts,
            Tensor<const I, 1> lengths, Tensor<T, 4> bev) {
  const int64_t cells = bev.dim(1) * bev.dim(2), channels = bev.dim(3);
  const BevIntervals<I> intervals{starts.data(), lengths.data(), starts.dim(0), ranks_bev.dim(0)};
  const Scratch<int32_t> owner = context.Allocate<int32_t>(cells);
  if (!owner) return Internal("out of memory: ", cells, " cells");
  const auto cell_of = [&](int64_t j, int64_t* cell) {
    *cell = ranks_bev[intervals.starts[j]];
    return CheckCell(intervals.starts[j], *cell, cells);
  };
  POLYOP_RETURN_IF_ERROR(FindOwners(intervals, cells, cell_of, owner.data()));
  const int64_t pixels = feat.dim(0) * feat.dim(1) * feat.dim(2);
  POLYOP_RETURN_IF_ERROR(CheckRanks("ranks_depth", intervals, ranks_depth, depth.size()));
  POLYOP_RETURN_IF_ERROR(CheckRanks("ranks_feat", intervals, ranks_feat, pixels));
  const WeighedPixels<T, I> rows{depth.data(), feat.data(), ranks_depth.data(), ranks_feat.data(), channels};
  SumIntervals(context, rows, intervals, owner.data(), cells, channels, bev.data());
  return Status::Ok();
}

// Of ranks of 32 and of 64 bits: a table of instruction sets takes templates of one argument.
template <class T>
Status BevPoolI32(const BevPool&, const Context& context, Tensor<const T, 4> depth, Tensor<const T, 4> feat,
                  Tensor<const int32_t, 1> ranks_depth, Tensor<const int32_t, 1> ranks_feat,
                  Tensor<const int32_t, 1> ranks_bev, Tensor<const int32_t, 1> interval_starts,
                  Tensor<const int32_t, 1> interval_lengths, Tensor<T, 4> bev) {
  return Pool(context, depth, feat, ranks_depth, ranks_feat, ranks_bev, interval_starts, interval_lengths, bev);
}
template <class T>
Status BevPoolI64(const BevPool&, const Context& context, Tensor<const T, 4> depth, Tensor<const T, 4> feat,
                  Tensor<const int64_t, 1> ranks_depth, Tensor<const int64_t, 1> ranks_feat,
                  Tensor<const int64_t, 1> ranks_bev, Tensor<const int64_t, 1> interval_starts,
                  Tensor<const int64_t, 1> interval_lengths, Tensor<T, 4> bev) {
  return Pool(context, depth, feat, ranks_depth, ranks_feat, ranks_bev, interval_starts, interval_lengths, bev);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(BevPool, BevPoolF32I32, BevPoolI32<float>);
POLYOP_CPU_KERNEL(BevPool, BevPoolF16I32, BevPoolI32<Half>);
POLYOP_CPU_KERNEL(BevPool, BevPoolBF16I32, BevPoolI32<BFloat16>);
POLYOP_CPU_KERNEL(BevPool, BevPoolF32I64, BevPoolI64<float>);
POLYOP_CPU_KERNEL(BevPool, BevPoolF16I64, BevPoolI64<Half>);
POLYOP_CPU_KERNEL(BevPool, BevPoolBF16I64, BevPoolI64<BFloat16>);
}  // namespace polyop
#endif
