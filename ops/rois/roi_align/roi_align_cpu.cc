// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/rois/batch_indices.h"
#include "ops/rois/roi_align/roi_align.h"
#include "ops/rois/upright_pool.h"

namespace polyop {
namespace {

template <class T>
Status RoiAlignCpu(const RoiAlign& op, const Context& context, Tensor<const T, 4> input, Tensor<const T, 2> rois,
                   Tensor<T, 4> output) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  const RoiLevel<T> level{input.data(), input.dim(2), input.dim(3), op.spatial_scale};
  const RoiPooling how{op.output_height, op.output_width, op.sampling_ratio, op.aligned,
                       op.mode == RoiAlign::Mode::kAvg};
  return PoolRois<T>(context, {&level, 1}, input.dim(1), rois.dim(0), {rois.data()}, how, output.data());
}

POLYOP_PLAIN_CPU_KERNELS(RoiAlign, RoiAlignCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
