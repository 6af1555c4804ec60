// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/deform_roi_pool/deform_roi_pool.h"
#include "ops/rois/deform_roi_pool/deform_roi_pool_bins.h"
#include "ops/rois/pool_bins_cuda.h"

namespace polyop {
namespace {

template <class T>
Status DeformRoiPoolCuda(const DeformRoiPool& op, const CudaContext& cuda, Tensor<const T, 4> input,
                         Tensor<const T, 2> rois, std::optional<Tensor<const T, 4>> offset, Tensor<T, 4> output) {
  const T *const row = rois.data(), *const offsets = offset ? offset->data() : nullptr;
  const int64_t height = input.dim(2), width = input.dim(3);
  return PoolBinsCuda(cuda, input, rois, output, [=] POLYOP_DEVICE(int64_t r, int64_t bin, const T* plane) {
    const auto bins = ShiftedBins<T>::Make(op, row + 5 * r, offsets, r);
    return AverageOfFreeBin(bins.y, bins.x, bins.Start(bin), plane, height, width);
  });
}

POLYOP_CUDA_KERNELS(DeformRoiPool, DeformRoiPoolCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
