// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/batch_indices.h"
#include "ops/rois/roi_pool_reference.h"
#include "ops/rois/tensorrt_roi_align/tensorrt_roi_align.h"

namespace polyop {
namespace {

Status TensorrtRoiAlignReference(const TensorrtRoiAlign& op, const Context&, Tensor<const double, 4> x,
                                 Tensor<const double, 2> rois, Tensor<const int64_t, 1> batch_indices,
                                 Tensor<double, 4> y) {
  const int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3);
  const bool average = op.mode == TensorrtRoiAlign::Mode::kAvg;
  const reference::PooledBins bins{op.output_height, op.output_width, op.sampling_ratio, average, !average};
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(batch_indices, x.dim(0)));
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* roi = rois.data() + 4 * r;
    const auto box = reference::PooledBox::Upright(roi[0], roi[1], roi[2], roi[3], op.spatial_scale, op.aligned());
    reference::PoolBox(box, bins, x.data() + batch_indices[r] * channels * height * width, channels, height, width,
                       y.data() + r * channels * bins.rows * bins.columns);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(TensorrtRoiAlign, TensorrtRoiAlignReference);

}  // namespace
}  // namespace polyop
