// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/rois/batch_indices.h"
#include "ops/rois/roi_pool_reference.h"
#include "ops/rois/tensorrt_roi_align/tensorrt_roi_align_backward.h"

namespace polyop {
namespace {

Status TensorrtRoiAlignBackwardReference(const TensorrtRoiAlignBackward& op, const Context&,
                                         Tensor<const double, 4> grad_y, Tensor<const double, 4> x,
                                         Tensor<const double, 2> rois, Tensor<const int64_t, 1> batch_indices,
                                         Tensor<double, 4> grad_x) {
  const int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3);
  const bool average = op.mode == TensorrtRoiAlign::Mode::kAvg;
  const reference::PooledBins bins{op.output_height, op.output_width, op.sampling_ratio, average, !average};
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(batch_indices, x.dim(0)));
  std::fill_n(grad_x.data(), grad_x.size(), 0.0);
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* roi = rois.data() + 4 * r;
    const auto box = reference::PooledBox::Upright(roi[0], roi[1], roi[2], roi[3], op.spatial_scale, op.aligned());
    const int64_t image = batch_indices[r] * channels * height * width;
    reference::AddPoolBoxBackward(box, bins, x.data() + image, channels, height, width,
                                  grad_y.data() + r * channels * bins.rows * bins.columns, grad_x.data() + image);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(TensorrtRoiAlignBackward, TensorrtRoiAlignBackwardReference);

}  // namespace
}  // namespace polyop
