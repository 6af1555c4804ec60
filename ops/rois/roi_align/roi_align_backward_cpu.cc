// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/batch_indices.h"
#include "ops/rois/roi_align/roi_align_backward.h"
#include "ops/rois/upright_backward.h"

namespace polyop {
namespace {

template <class T>
Status RoiAlignBackwardCpu(const RoiAlignBackward& op, const Context& context, Tensor<const T, 4> grad_output,
                           Tensor<const T, 4> input, Tensor<const T, 2> rois, Tensor<T, 4> grad_input) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  const RoiPooling how{op.output_height, op.output_width, op.sampling_ratio, op.aligned,
                       op.mode == RoiAlign::Mode::kAvg};
  const RoiLevel<T> level{input.data(), input.dim(2), input.dim(3), op.spatial_scale};
  return PoolRoisBackward<T>(context, {&level, 1}, input.dim(0), input.dim(1), rois.dim(0), {rois.data()}, how,
                             grad_output.data(), grad_input.data());
}

POLYOP_PLAIN_CPU_KERNELS(RoiAlignBackward, RoiAlignBackwardCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
