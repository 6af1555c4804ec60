// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/quick_cumsum/quick_cumsum.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/bev/quick_cumsum/quick_cumsum_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/bev/bev_sums-inl.h"
#include "ops/bev/quick_cumsum/quick_cumsum_values.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T, class I>
Status Sum(const Context& context, Tensor<const T, 2> x, Tensor<const I, 2> geom_feats, Tensor<const I, 1> lengths,
           Tensor<const I, 1> starts, Tensor<T, 5> bev) {
  const int64_t cells = bev.dim(0) * bev.dim(1) * bev.dim(2) * bev.dim(3), channels = bev.dim(4);
  const BevIntervals<I> intervals{starts.data(), lengths.data(), starts.dim(0), x.dim(0)};
  const Scratch<int32_t> owner = context.Allocate<int32_t>(cells);
  if (!owner) return Internal("out of memory: ", cells, " cells");
  const auto cell_of = [&](int64_t j, int64_t* cell) {
    return FindCell(intervals, j, geom_feats.data(), bev.shape(), cell);
  };
  POLYOP_RETURN_IF_ERROR(FindOwners(intervals, cells, cell_of, owner.data()));
  SumIntervals(context, PlainRows<T>{x.data(), channels}, intervals, owner.data(), cells, channels, bev.data());
  return Status::Ok();
}

// Separate entry points for 32-bit and 64-bit indices, because a dispatch table takes templates of one argument.
template <class T>
Status QuickCumsumI32(const QuickCumsum&, const Context& context, Tensor<const T, 2> x,
                      Tensor<const int32_t, 2> geom_feats, Tensor<const int32_t, 1> interval_lengths,
                      Tensor<const int32_t, 1> interval_starts, Tensor<T, 5> bev) {
  return Sum(context, x, geom_feats, interval_lengths, interval_starts, bev);
}
template <class T>
Status QuickCumsumI64(const QuickCumsum&, const Context& context, Tensor<const T, 2> x,
                      Tensor<const int64_t, 2> geom_feats, Tensor<const int64_t, 1> interval_lengths,
                      Tensor<const int64_t, 1> interval_starts, Tensor<T, 5> bev) {
  return Sum(context, x, geom_feats, interval_lengths, interval_starts, bev);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(QuickCumsum, QuickCumsumI32, float, Half, BFloat16);
POLYOP_CPU_KERNELS(QuickCumsum, QuickCumsumI64, float, Half, BFloat16);
}  // namespace polyop
#endif
