// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/batch_indices.h"
#include "ops/rois/bezier_align/bezier_align_backward.h"
#include "ops/rois/bezier_align/bezier_align_bins.h"

namespace polyop {
namespace {

template <class T>
Status BezierAlignBackwardCpu(const BezierAlignBackward& op, const Context& context, Tensor<const T, 4> grad_output,
                              Tensor<const T, 4> input, Tensor<const T, 2> rois, Tensor<T, 4> grad_input) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  return PoolRoisWithFreeBinsBackward<T>(
      context, op.spatial_scale, rois, [&](int64_t r) { return BezierBins::Make(op, rois.data() + 17 * r); },
      grad_output, grad_input);
}

POLYOP_PLAIN_CPU_KERNELS(BezierAlignBackward, BezierAlignBackwardCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
