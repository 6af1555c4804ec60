// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/batch_indices.h"
#include "ops/rois/bezier_align/bezier_align.h"
#include "ops/rois/bezier_align/bezier_align_bins.h"

namespace polyop {
namespace {

template <class T>
Status BezierAlignCpu(const BezierAlign& op, const Context& context, Tensor<const T, 4> input, Tensor<const T, 2> rois,
                      Tensor<T, 4> output) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  return PoolRoisWithFreeBins<T>(
      context, {input.data(), input.dim(2), input.dim(3), op.spatial_scale}, rois,
      [&](int64_t r) { return BezierBins::Make(op, rois.data() + 17 * r); }, output);
}

POLYOP_PLAIN_CPU_KERNELS(BezierAlign, BezierAlignCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
