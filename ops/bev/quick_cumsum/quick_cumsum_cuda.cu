// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/bev_sums_cuda.h"
#include "ops/bev/quick_cumsum/quick_cumsum.h"
#include "ops/bev/quick_cumsum/quick_cumsum_cells_cuda.h"

namespace polyop {
namespace {

template <class T, class I>
Status QuickCumsumCuda(const QuickCumsum& op, const CudaContext& cuda, Tensor<const T, 2> x,
                       Tensor<const I, 2> geom_feats, Tensor<const I, 1> interval_lengths,
                       Tensor<const I, 1> interval_starts, Tensor<T, 5> bev) {
  const BevIntervals<I> intervals{interval_starts.data(), interval_lengths.data(), interval_starts.dim(0), x.dim(0)};
  const auto cell_of = CellOfPoints<I>::Of(op, intervals, geom_feats.data());
  const int64_t channels = bev.dim(4);
  const T* const features = x.data();
  return SumIntervalsCuda(
      cuda, intervals, cell_of.cells(), channels, cell_of,
      [=] POLYOP_DEVICE(int64_t r, int64_t c) { return ToFloat(features[r * channels + c]); }, bev.data());
}

POLYOP_CUDA_KERNELS(QuickCumsum, QuickCumsumCuda, (float, int32_t), (Half, int32_t), (BFloat16, int32_t),
                    (float, int64_t), (Half, int64_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
