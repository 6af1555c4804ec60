// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/rois/batch_indices.h"
#include "ops/rois/bezier_align/bezier_align_boxes_reference.h"

namespace polyop {
namespace {

Status BezierAlignReference(const BezierAlign& op, const Context&, Tensor<const double, 4> input,
                            Tensor<const double, 2> rois, Tensor<double, 4> output) {
  const int64_t channels = input.dim(1), height = input.dim(2), width = input.dim(3);
  const int64_t bins = op.output_height * op.output_width;
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  std::vector<double> pooled(static_cast<size_t>(channels));
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* roi = rois.data() + 17 * r;
    const double* planes = input.data() + static_cast<int64_t>(roi[0]) * channels * height * width;
    for (int64_t b = 0; b < bins; ++b) {
      reference::PoolBox(reference::BezierBin(op, roi, b), {1, 1, op.sampling_ratio, true}, planes, channels, height,
                         width, pooled.data());
      for (int64_t c = 0; c < channels; ++c) output[(r * channels + c) * bins + b] = pooled[static_cast<size_t>(c)];
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(BezierAlign, BezierAlignReference);

}  // namespace
}  // namespace polyop
