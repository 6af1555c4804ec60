// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "ops/rois/batch_indices.h"
#include "ops/rois/riroi_align_rotated/riroi_align_rotated_backward.h"
#include "ops/rois/roi_pool_reference.h"

namespace polyop {
namespace {

Status RiRoiAlignRotatedBackwardReference(const RiRoiAlignRotatedBackward& op, const Context&,
                                          Tensor<const double, 4> grad_output, Tensor<const double, 4> input,
                                          Tensor<const double, 2> rois, Tensor<double, 4> grad_input) {
  const int64_t channels = input.dim(1), height = input.dim(2), width = input.dim(3);
  const int64_t bins = op.pooled_height * op.pooled_width;
  const auto count = static_cast<double>(op.num_orientations);
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  std::fill_n(grad_input.data(), grad_input.size(), 0.0);
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* const roi = rois.data() + 6 * r;
    const double shift = static_cast<double>(static_cast<float>(roi[5] * count / (2 * std::numbers::pi)));
    if (!std::isfinite(shift)) continue;
    const double down = std::floor(shift), part = shift - down, back = std::fmod(down, count);
    std::vector<double> pooled(static_cast<size_t>(channels * bins));
    for (int64_t i = 0; i < channels * bins; ++i) {
      const int64_t channel = i / bins, o = channel % op.num_orientations;
      // Adds to the orientation `steps` orientations before o, modulo the number of orientations.
      const auto add = [&](double steps, double value) {
        const double position = static_cast<double>(o) - steps,
                     on_circle = position - count * std::floor(position / count);
        const int64_t to = channel - o + static_cast<int64_t>(on_circle) % op.num_orientations;
        pooled[static_cast<size_t>(to * bins + i % bins)] += value;
      };
      const double grad = grad_output[r * channels * bins + i];
      add(back, (1 - part) * grad);
      if (part > 0) add(back - 1, part * grad);
    }
    const auto box = reference::PooledBox::Rotated(roi[1], roi[2], roi[3], roi[4], op.clockwise ? -roi[5] : roi[5],
                                                   op.spatial_scale, false);
    const int64_t image = static_cast<int64_t>(roi[0]) * channels * height * width;
    reference::AddPoolBoxBackward(box, {op.pooled_height, op.pooled_width, op.num_samples, true}, input.data() + image,
                                  channels, height, width, pooled.data(), grad_input.data() + image);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(RiRoiAlignRotatedBackward, RiRoiAlignRotatedBackwardReference);

}  // namespace
}  // namespace polyop
