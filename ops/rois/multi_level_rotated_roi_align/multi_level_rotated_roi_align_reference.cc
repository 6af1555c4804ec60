// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/batch_indices.h"
#include "ops/rois/multi_level_rotated_roi_align/multi_level_rotated_roi_align.h"
#include "ops/rois/roi_pool_reference.h"

namespace polyop {
namespace {

Status MultiLevelRotatedRoiAlignReference(const MultiLevelRotatedRoiAlign& op, const Context&,
                                          Tensor<const double, 2> rois, TensorList<const double, 4> feats,
                                          Tensor<double, 4> output) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, feats[0].dim(0)));
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* roi = rois.data() + 6 * r;
    const double factor = op.roi_scale_factor > 0 ? op.roi_scale_factor : 1.0, angle = op.clockwise ? -roi[5] : roi[5];
    const auto box_at = [&](double scale) {
      return reference::PooledBox::Rotated(roi[1], roi[2], roi[3] * factor, roi[4] * factor, angle, scale, op.aligned);
    };
    reference::PoolFromLevel(op, roi[3], roi[4], box_at, true, feats, static_cast<int64_t>(roi[0]),
                             output.data() + r * output.dim(1) * op.output_height * op.output_width);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(MultiLevelRotatedRoiAlign, MultiLevelRotatedRoiAlignReference);

}  // namespace
}  // namespace polyop
