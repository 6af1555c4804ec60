// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/rois/batch_indices.h"
#include "ops/rois/roi_align/roi_align_backward.h"
#include "ops/rois/roi_pool_reference.h"

namespace polyop {
namespace {

Status RoiAlignBackwardReference(const RoiAlignBackward& op, const Context&, Tensor<const double, 4> grad_output,
                                 Tensor<const double, 4> input, Tensor<const double, 2> rois,
                                 Tensor<double, 4> grad_input) {
  const int64_t channels = input.dim(1), height = input.dim(2), width = input.dim(3);
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  std::fill_n(grad_input.data(), grad_input.size(), 0.0);
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* roi = rois.data() + 5 * r;
    const auto box = reference::PooledBox::Upright(roi[1], roi[2], roi[3], roi[4], op.spatial_scale, op.aligned);
    const int64_t image = static_cast<int64_t>(roi[0]) * channels * height * width;
    reference::AddPoolBoxBackward(
        box, {op.output_height, op.output_width, op.sampling_ratio, op.mode == RoiAlign::Mode::kAvg},
        input.data() + image, channels, height, width,
        grad_output.data() + r * channels * op.output_height * op.output_width, grad_input.data() + image);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(RoiAlignBackward, RoiAlignBackwardReference);

}  // namespace
}  // namespace polyop
