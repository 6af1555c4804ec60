// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/atomic_add.h"
#include "ops/bev/bev_sums_cuda.h"
#include "ops/bev/quick_cumsum/quick_cumsum_backward.h"
#include "ops/bev/quick_cumsum/quick_cumsum_cells_cuda.h"

namespace polyop {
namespace {

// Each thread adds one channel of an interval's cell to the interval's points.
template <class T, class I>
Status QuickCumsumBackwardCuda(const QuickCumsumBackward& op, const CudaContext& cuda, Tensor<const T, 5> grad_bev,
                               Tensor<const T, 2> x, Tensor<const I, 2> geom_feats, Tensor<const I, 1> lengths,
                               Tensor<const I, 1> starts, Tensor<T, 2> grad_x) {
  const BevIntervals<I> intervals{starts.data(), lengths.data(), starts.dim(0), x.dim(0)};
  const auto cell_of = CellOfPoints<I>::Of(op, intervals, geom_feats.data());
  const int64_t cells = cell_of.cells(), channels = x.dim(1);
  const T* const grads = grad_bev.data();
  const Divider by_channels(channels);
  const int64_t* owner = nullptr;
  POLYOP_RETURN_IF_ERROR(FindOwnersCuda(cuda, intervals, cells, cell_of, &owner));
  return SumAtomically(cuda, 1, x.dim(0), channels, grad_x.data(), [&](const ChannelSums& sums) {
    return ForEach(cuda, intervals.count * channels, [=] POLYOP_DEVICE(int64_t i) {
      int64_t c;
      const int64_t j = by_channels.Split(i, &c), cell = OwnedCell(intervals, j, cells, cell_of, owner);
      if (cell < 0) return;
      const float grad = ToFloat(grads[cell * channels + c]);
      const int64_t begin = intervals.starts[j], end = begin + intervals.lengths[j];
      for (int64_t p = begin; p < end; ++p) {
        if (sums.Has(p)) AtomicAdd(sums.Plane(0, p) + c, grad);
      }
    });
  });
}

POLYOP_ATOMIC_CUDA_KERNELS(QuickCumsumBackward, QuickCumsumBackwardCuda, (float, int32_t), (Half, int32_t),
                           (BFloat16, int32_t), (float, int64_t), (Half, int64_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
