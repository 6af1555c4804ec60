// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/batch_indices.h"
#include "ops/rois/deform_roi_pool/deform_roi_pool.h"
#include "ops/rois/deform_roi_pool/deform_roi_pool_bins.h"

namespace polyop {
namespace {

template <class T>
Status DeformRoiPoolCpu(const DeformRoiPool& op, const Context& context, Tensor<const T, 4> input,
                        Tensor<const T, 2> rois, std::optional<Tensor<const T, 4>> offset, Tensor<T, 4> output) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  const T* const offsets = offset ? offset->data() : nullptr;
  return PoolRoisWithFreeBins<T>(
      context, {input.data(), input.dim(2), input.dim(3), op.spatial_scale}, rois,
      [&](int64_t r) { return ShiftedBins<T>::Make(op, rois.data() + 5 * r, offsets, r); }, output);
}

POLYOP_PLAIN_CPU_KERNELS(DeformRoiPool, DeformRoiPoolCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
