// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/bev/quick_cumsum/quick_cumsum_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/float_sums-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/type_pairs.h"
#include "ops/bev/bev_owners.h"
#include "ops/bev/quick_cumsum/quick_cumsum_backward.h"
#include "ops/bev/quick_cumsum/quick_cumsum_values.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Finds the cell of each point, kNoInterval without one. Returns false if a point has several.
template <class I>
bool FindCellsOfPoints(const BevIntervals<I>& intervals, const int32_t* owner, int64_t cells, int32_t* cell_of) {
  std::fill_n(cell_of, intervals.ranks, kNoInterval);
  for (int64_t cell = 0; cell < cells; ++cell) {
    if (owner[cell] == kNoInterval) continue;
    const int64_t first = intervals.starts[owner[cell]];
    for (int64_t p = first; p < first + intervals.lengths[owner[cell]]; ++p) {
      if (cell_of[p] != kNoInterval) return false;
      cell_of[p] = static_cast<int32_t>(cell);
    }
  }
  return true;
}

// For intervals that overlap. A task owns some channels.
template <class T, class I>
Status AddCells(const Context& context, const BevIntervals<I>& intervals, const int32_t* owner, int64_t cells,
                int64_t channels, const T* grad, T* to) {
  constexpr int64_t kChannels = 16;
  const FloatSums<T> sums(context, to, intervals.ranks * channels);
  if (!sums) return Internal("out of memory: gradients of ", intervals.ranks, " points of ", channels, " channels");
  context.ParallelFor((channels + kChannels - 1) / kChannels, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    const int64_t c = begin * kChannels, width = std::min(channels, end * kChannels) - c;
    for (int64_t cell = 0; cell < cells; ++cell) {
      if (owner[cell] == kNoInterval) continue;
      const int64_t first = intervals.starts[owner[cell]];
      for (int64_t p = first; p < first + intervals.lengths[owner[cell]]; ++p) {
        AddRow<true, false>(grad + cell * channels + c, nullptr, 1, width, sums.data() + p * channels + c);
      }
    }
  });
  sums.Finish();
  return Status::Ok();
}

template <class Types, class T = typename Types::Real, class I = typename Types::Int>
Status QuickCumsumBackwardCpu(const QuickCumsumBackward&, const Context& context, Tensor<const T, 5> grad_bev,
                              Tensor<const T, 2> x, Tensor<const I, 2> geom_feats, Tensor<const I, 1> lengths,
                              Tensor<const I, 1> starts, Tensor<T, 2> grad_x) {
  const Shape& bev = grad_bev.shape();
  const int64_t cells = bev[0] * bev[1] * bev[2] * bev[3], channels = bev[4], points = x.dim(0);
  if (cells > INT32_MAX) return InvalidArgument("'grad_bev': expected at most ", INT32_MAX, " cells, got ", cells);
  const BevIntervals<I> intervals{starts.data(), lengths.data(), starts.dim(0), points};
  const Scratch<int32_t> owner = context.Allocate<int32_t>(cells), cell_of = context.Allocate<int32_t>(points);
  if (!owner || !cell_of) return Internal("out of memory: ", cells, " cells and ", points, " points");
  const auto find_cell = [&](int64_t j, int64_t* cell) { return FindCell(intervals, j, geom_feats.data(), bev, cell); };
  POLYOP_RETURN_IF_ERROR(FindOwners(intervals, cells, find_cell, owner.data()));
  if (!FindCellsOfPoints(intervals, owner.data(), cells, cell_of.data())) {
    return AddCells(context, intervals, owner.data(), cells, channels, grad_bev.data(), grad_x.data());
  }
  context.ParallelFor(points, GrainFor(2 + 0.2 * static_cast<double>(channels)), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      T* const row = grad_x.data() + p * channels;
      if (cell_of[p] == kNoInterval) {
        std::fill_n(row, channels, FromFloat<T>(0));
      } else {
        std::copy_n(grad_bev.data() + cell_of[p] * channels, channels, row);
      }
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(QuickCumsumBackward, QuickCumsumBackwardCpu, F32I32, F32I64, F16I32, F16I64, BF16I32, BF16I64);
}  // namespace polyop
#endif
