// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/pool_bins_cuda.h"
#include "ops/rois/prroi_pool/prroi_pool.h"
#include "ops/rois/prroi_pool/prroi_pool_bins.h"

namespace polyop {
namespace {

template <class T>
Status PrRoiPoolCuda(const PrRoiPool& op, const CudaContext& cuda, Tensor<const T, 4> features, Tensor<const T, 2> rois,
                     Tensor<T, 4> output) {
  const T* const row = rois.data();
  const int64_t height = features.dim(2), width = features.dim(3);
  return PoolBinsCuda(cuda, features, rois, output, [=] POLYOP_DEVICE(int64_t r, int64_t bin, const T* plane) {
    const PreciseRoi roi = PreciseRoi::Of(op, row + 5 * r);
    const PreciseBin down = roi.y.Bin(bin / op.pooled_width, height), across = roi.x.Bin(bin % op.pooled_width, width);
    float sum = 0;
    for (int64_t y = down.first; y < down.last; ++y) {
      const double row_weight = down.WeightOf(y);
      for (int64_t x = across.first; x < across.last; ++x) {
        const auto weight = static_cast<float>(row_weight * across.WeightOf(x));
        if (weight != 0) sum = std::fma(ToFloat(plane[y * width + x]), weight, sum);
      }
    }
    return sum;
  });
}

POLYOP_CUDA_KERNELS(PrRoiPool, PrRoiPoolCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
