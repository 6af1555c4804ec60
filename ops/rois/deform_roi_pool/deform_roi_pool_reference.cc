// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/rois/batch_indices.h"
#include "ops/rois/deform_roi_pool/deform_roi_pool_boxes_reference.h"

namespace polyop {
namespace {

Status DeformRoiPoolReference(const DeformRoiPool& op, const Context&, Tensor<const double, 4> input,
                              Tensor<const double, 2> rois, std::optional<Tensor<const double, 4>> offset,
                              Tensor<double, 4> output) {
  const int64_t channels = input.dim(1), height = input.dim(2), width = input.dim(3);
  const int64_t bins = op.pooled_height * op.pooled_width;
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  std::vector<double> pooled(static_cast<size_t>(channels));
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* roi = rois.data() + 5 * r;
    for (int64_t b = 0; b < bins; ++b) {
      const auto bin = reference::ShiftedBin(op, roi, offset ? offset->data() : nullptr, r, b);
      reference::PoolBox(bin, {1, 1, op.Samples(), true},
                         input.data() + static_cast<int64_t>(roi[0]) * channels * height * width, channels, height,
                         width, pooled.data());
      for (int64_t c = 0; c < channels; ++c) output[(r * channels + c) * bins + b] = pooled[static_cast<size_t>(c)];
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(DeformRoiPool, DeformRoiPoolReference);

}  // namespace
}  // namespace polyop
