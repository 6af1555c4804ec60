#include <cmath>
#include <vector>

#include "families/rois/roi_pool_reference.h"
#include "families/rois/rois.h"
#include "ops/deform_roi_pool/deform_roi_pool.h"

namespace polyop {
namespace {

// Each bin is a box of one bin, moved.
Status DeformRoiPoolReference(const DeformRoiPool& op, const Context&, Tensor<const double, 4> input,
                              Tensor<const double, 2> rois, std::optional<Tensor<const double, 4>> offset,
                              Tensor<double, 4> output) {
  const int64_t channels = input.dim(1), height = input.dim(2), width = input.dim(3);
  const int64_t bins = op.pooled_height * op.pooled_width;
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  std::vector<double> pooled(static_cast<size_t>(channels));
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* roi = rois.data() + 5 * r;
    const auto box = reference::PooledBox::Upright(roi[1], roi[2], roi[3], roi[4], op.spatial_scale, true);
    for (int64_t b = 0; b < bins; ++b) {
      reference::PooledBox bin = box;
      bin.width /= static_cast<double>(op.pooled_width);
      bin.height /= static_cast<double>(op.pooled_height);
      bin.x += bin.width * static_cast<double>(b % op.pooled_width);
      bin.y += bin.height * static_cast<double>(b / op.pooled_width);
      if (offset) {
        bin.x += op.gamma * box.width * (*offset)[2 * r * bins + b];
        bin.y += op.gamma * box.height * (*offset)[(2 * r + 1) * bins + b];
      }
      bin.finite = box.finite && std::isfinite(bin.x) && std::isfinite(bin.y);
      reference::PoolBox(bin, {1, 1, op.Samples(), true},
                         input.data() + static_cast<int64_t>(roi[0]) * channels * height * width, channels, height,
                         width, pooled.data());
      for (int64_t c = 0; c < channels; ++c) output[(r * channels + c) * bins + b] = pooled[static_cast<size_t>(c)];
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(DeformRoiPool, DeformRoiPoolF64, DeformRoiPoolReference);

}  // namespace
}  // namespace polyop
