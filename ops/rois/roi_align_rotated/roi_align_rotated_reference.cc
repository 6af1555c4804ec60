// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/batch_indices.h"
#include "ops/rois/roi_align_rotated/roi_align_rotated.h"
#include "ops/rois/roi_pool_reference.h"

namespace polyop {
namespace {

Status RoiAlignRotatedReference(const RoiAlignRotated& op, const Context&, Tensor<const double, 4> input,
                                Tensor<const double, 2> rois, Tensor<double, 4> output) {
  const int64_t channels = input.dim(1), height = input.dim(2), width = input.dim(3);
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* roi = rois.data() + 6 * r;
    const auto box = reference::PooledBox::Rotated(roi[1], roi[2], roi[3], roi[4], op.clockwise ? -roi[5] : roi[5],
                                                   op.spatial_scale, op.aligned);
    reference::PoolBox(box, {op.output_height, op.output_width, op.sampling_ratio, true},
                       input.data() + static_cast<int64_t>(roi[0]) * channels * height * width, channels, height, width,
                       output.data() + r * channels * op.output_height * op.output_width);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(RoiAlignRotated, RoiAlignRotatedReference);

}  // namespace
}  // namespace polyop
