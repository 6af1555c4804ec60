#include "families/points/bev_sums_cuda.h"
#include "ops/bev_pool/bev_pool.h"

namespace polyop {
namespace {

// A rank outside of its tensor makes the cell NaN.
template <class T, class I>
Status BevPoolCuda(const BevPool&, const CudaContext& cuda, Tensor<const T, 4> depth, Tensor<const T, 4> feat,
                   Tensor<const I, 1> ranks_depth, Tensor<const I, 1> ranks_feat, Tensor<const I, 1> ranks_bev,
                   Tensor<const I, 1> interval_starts, Tensor<const I, 1> interval_lengths, Tensor<T, 4> bev) {
  const BevIntervals<I> intervals{interval_starts.data(), interval_lengths.data(), interval_starts.dim(0),
                                  ranks_bev.dim(0)};
  const int64_t depths = depth.size(), pixels = feat.dim(0) * feat.dim(1) * feat.dim(2), channels = bev.dim(3);
  const T *const weights = depth.data(), *const features = feat.data();
  const I *const of_depth = ranks_depth.data(), *const of_feat = ranks_feat.data(), *const of_bev = ranks_bev.data();
  return SumIntervalsCuda(
      cuda, intervals, bev.dim(1) * bev.dim(2), channels,
      [=] POLYOP_HD(int64_t j) { return int64_t{of_bev[intervals.starts[j]]}; },
      [=] POLYOP_HD(int64_t r, int64_t c) {
        const int64_t weight = of_depth[r], pixel = of_feat[r];
        const bool inside = weight >= 0 && weight < depths && pixel >= 0 && pixel < pixels;
        return inside ? ToFloat(weights[weight]) * ToFloat(features[pixel * channels + c]) : NAN;
      },
      bev.data());
}

POLYOP_CUDA_KERNEL(BevPool, BevPoolF32I32, BevPoolCuda<float, int32_t>);
POLYOP_CUDA_KERNEL(BevPool, BevPoolF16I32, BevPoolCuda<Half, int32_t>);
POLYOP_CUDA_KERNEL(BevPool, BevPoolBF16I32, BevPoolCuda<BFloat16, int32_t>);
POLYOP_CUDA_KERNEL(BevPool, BevPoolF32I64, BevPoolCuda<float, int64_t>);
POLYOP_CUDA_KERNEL(BevPool, BevPoolF16I64, BevPoolCuda<Half, int64_t>);
POLYOP_CUDA_KERNEL(BevPool, BevPoolBF16I64, BevPoolCuda<BFloat16, int64_t>);

}  // namespace
}  // namespace polyop
