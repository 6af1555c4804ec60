// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/batch_indices.h"
#include "ops/rois/multi_level_roi_align/multi_level_roi_align.h"
#include "ops/rois/roi_pool_reference.h"

namespace polyop {
namespace {

Status MultiLevelRoiAlignReference(const MultiLevelRoiAlign& op, const Context&, Tensor<const double, 2> rois,
                                   TensorList<const double, 4> feats, Tensor<double, 4> output) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, feats[0].dim(0)));
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* roi = rois.data() + 5 * r;
    const double width = roi[3] - roi[1], height = roi[4] - roi[2];
    const double half = (op.roi_scale_factor > 0 ? op.roi_scale_factor : 1.0) / 2;
    const double x = (roi[1] + roi[3]) / 2, y = (roi[2] + roi[4]) / 2;
    const auto box_at = [&](double scale) {
      return reference::PooledBox::Upright(x - width * half, y - height * half, x + width * half, y + height * half,
                                           scale, op.aligned);
    };
    reference::PoolFromLevel(op, width, height, box_at, op.pool_mode == MultiLevelRoiAlign::PoolMode::kAvg, feats,
                             static_cast<int64_t>(roi[0]),
                             output.data() + r * output.dim(1) * op.output_height * op.output_width);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(MultiLevelRoiAlign, MultiLevelRoiAlignReference);

}  // namespace
}  // namespace polyop
