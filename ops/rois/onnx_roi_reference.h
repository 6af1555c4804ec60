// SPDX-License-Identifier: Apache-2.0
// ONNX's RoiAlign in double precision: for reference kernels only.
#pragma once

#include "ops/rois/batch_indices.h"
#include "ops/rois/onnx_roi_rule.h"
#include "ops/rois/roi_pool_reference.h"

namespace polyop::reference {

inline Status OnnxRoiAlign(const OnnxRoiRule& op, const Tensor<const double, 4>& x, const Tensor<const double, 2>& rois,
                           const Tensor<const int64_t, 1>& batch_indices, const Tensor<double, 4>& y) {
  const int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3);
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(batch_indices, x.dim(0)));
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* roi = rois.data() + 4 * r;
    const auto box = PooledBox::Upright(roi[0], roi[1], roi[2], roi[3], op.spatial_scale, op.aligned());
    PoolBox(box, {op.output_height, op.output_width, op.sampling_ratio, op.mode == OnnxRoiRule::Mode::kAvg},
            x.data() + batch_indices[r] * channels * height * width, channels, height, width,
            y.data() + r * channels * op.output_height * op.output_width);
  }
  return Status::Ok();
}

}  // namespace polyop::reference
