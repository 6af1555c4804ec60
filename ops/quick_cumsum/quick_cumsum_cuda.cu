#include "families/bev/bev_sums_cuda.h"
#include "ops/quick_cumsum/quick_cumsum.h"

namespace polyop {
namespace {

template <class T, class I>
Status QuickCumsumCuda(const QuickCumsum& op, const CudaContext& cuda, Tensor<const T, 2> x,
                       Tensor<const I, 2> geom_feats, Tensor<const I, 1> interval_lengths,
                       Tensor<const I, 1> interval_starts, Tensor<T, 5> bev) {
  const BevIntervals<I> intervals{interval_starts.data(), interval_lengths.data(), interval_starts.dim(0), x.dim(0)};
  const int64_t images = op.batch_size, layers = op.dimension, rows = op.height, columns = op.width;
  const int64_t channels = bev.dim(4);
  const T* const features = x.data();
  const I* const positions = geom_feats.data();
  return SumIntervalsCuda(
      cuda, intervals, images * layers * rows * columns, channels,
      [=] POLYOP_HD(int64_t j) {
        const I* const at = positions + 4 * (int64_t{intervals.starts[j]} + intervals.lengths[j] - 1);
        const bool inside = at[0] >= 0 && at[0] < rows && at[1] >= 0 && at[1] < columns && at[2] >= 0 &&
                            at[2] < layers && at[3] >= 0 && at[3] < images;
        return inside ? ((at[3] * layers + at[2]) * rows + at[0]) * columns + at[1] : int64_t{-1};
      },
      [=] POLYOP_HD(int64_t r, int64_t c) { return ToFloat(features[r * channels + c]); }, bev.data());
}

POLYOP_CUDA_KERNELS(QuickCumsum, QuickCumsumCuda, (float, int32_t), (Half, int32_t), (BFloat16, int32_t),
                    (float, int64_t), (Half, int64_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
