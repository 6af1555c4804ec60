// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/rois/batch_indices.h"
#include "ops/rois/multi_level_rotated_roi_align/multi_level_rotated_roi_align_backward.h"
#include "ops/rois/roi_pool_reference.h"

namespace polyop {
namespace {

Status MultiLevelRotatedRoiAlignBackwardReference(const MultiLevelRotatedRoiAlignBackward& op, const Context&,
                                                  Tensor<const double, 4> grad_output, Tensor<const double, 2> rois,
                                                  TensorList<const double, 4> feats, Tensor<double, 1> grad_feats) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, feats[0].dim(0)));
  std::fill_n(grad_feats.data(), grad_feats.size(), 0.0);
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* roi = rois.data() + 6 * r;
    const double factor = op.roi_scale_factor > 0 ? op.roi_scale_factor : 1.0, angle = op.clockwise ? -roi[5] : roi[5];
    const auto box_at = [&](double scale) {
      return reference::PooledBox::Rotated(roi[1], roi[2], roi[3] * factor, roi[4] * factor, angle, scale, op.aligned);
    };
    const double* const grad = grad_output.data() + r * grad_output.dim(1) * op.output_height * op.output_width;
    reference::AddPoolFromLevelBackward(op, roi[3], roi[4], box_at, true, feats, static_cast<int64_t>(roi[0]), grad,
                                        grad_feats.data());
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(MultiLevelRotatedRoiAlignBackward, MultiLevelRotatedRoiAlignBackwardReference);

}  // namespace
}  // namespace polyop
