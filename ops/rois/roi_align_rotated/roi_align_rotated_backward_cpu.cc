// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/batch_indices.h"
#include "ops/rois/roi_align_rotated/roi_align_rotated_backward.h"
#include "ops/rois/rotated_pool.h"

namespace polyop {
namespace {

template <class T>
Status RoiAlignRotatedBackwardCpu(const RoiAlignRotatedBackward& op, const Context& context,
                                  Tensor<const T, 4> grad_output, Tensor<const T, 4> input, Tensor<const T, 2> rois,
                                  Tensor<T, 4> grad_input) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  const RoiLevel<T> level{input.data(), input.dim(2), input.dim(3), op.spatial_scale};
  const RoiPooling how{op.output_height, op.output_width, op.sampling_ratio, op.aligned, true};
  return PoolRotatedRoisBackward<T>(context, {&level, 1}, input.dim(0), input.dim(1), rois.dim(0),
                                    {rois.data(), op.clockwise}, how, grad_output.data(), grad_input.data());
}

POLYOP_PLAIN_CPU_KERNELS(RoiAlignRotatedBackward, RoiAlignRotatedBackwardCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
