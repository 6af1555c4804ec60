// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>
#include <vector>

#include "ops/rois/batch_indices.h"
#include "ops/rois/riroi_align_rotated/riroi_align_rotated.h"
#include "ops/rois/roi_pool_reference.h"

namespace polyop {
namespace {

Status RiRoiAlignRotatedReference(const RiRoiAlignRotated& op, const Context&, Tensor<const double, 4> input,
                                  Tensor<const double, 2> rois, Tensor<double, 4> output) {
  const int64_t channels = input.dim(1), height = input.dim(2), width = input.dim(3);
  const int64_t bins = op.pooled_height * op.pooled_width;
  const auto count = static_cast<double>(op.num_orientations);
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  std::vector<double> pooled(static_cast<size_t>(channels * bins));
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* roi = rois.data() + 6 * r;
    const auto box = reference::PooledBox::Rotated(roi[1], roi[2], roi[3], roi[4], op.clockwise ? -roi[5] : roi[5],
                                                   op.spatial_scale, false);
    reference::PoolBox(box, {op.pooled_height, op.pooled_width, op.num_samples, true},
                       input.data() + static_cast<int64_t>(roi[0]) * channels * height * width, channels, height, width,
                       pooled.data());
    const double shift = static_cast<double>(static_cast<float>(roi[5] * count / (2 * std::numbers::pi)));
    const double down = std::floor(shift), part = shift - down;
    for (int64_t i = 0; i < channels * bins; ++i) {
      const int64_t channel = i / bins, o = channel % op.num_orientations;
      // Pools the orientation `back` orientations before o, modulo the number of orientations.
      const auto pooled_at = [&](double back) {
        const double position = static_cast<double>(o) - back,
                     on_circle = position - count * std::floor(position / count);
        const int64_t from = channel - o + static_cast<int64_t>(on_circle) % op.num_orientations;
        return pooled[static_cast<size_t>(from * bins + i % bins)];
      };
      double value = 0;
      if (std::isfinite(shift)) {
        const double back = std::fmod(down, count);
        value = (1 - part) * pooled_at(back) + (part > 0 ? part * pooled_at(back - 1) : 0);
      }
      output[r * channels * bins + i] = value;
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(RiRoiAlignRotated, RiRoiAlignRotatedReference);

}  // namespace
}  // namespace polyop
