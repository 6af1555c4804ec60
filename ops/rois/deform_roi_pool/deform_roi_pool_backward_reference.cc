// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/rois/batch_indices.h"
#include "ops/rois/deform_roi_pool/deform_roi_pool_backward.h"
#include "ops/rois/deform_roi_pool/deform_roi_pool_boxes_reference.h"

namespace polyop {
namespace {

// Returns the derivative of a bilinear sample along x (or y). At and beyond the border it is 0.
double Slope(const double* plane, int64_t height, int64_t width, double y, double x, bool along_x) {
  const double at = along_x ? x : y, last = static_cast<double>((along_x ? width : height) - 1);
  if (!reference::IsInside(height, width, y, x) || at < 0 || at >= last) return 0;
  const auto sample = [&](double to) {
    return reference::SampleClamped(plane, height, width, along_x ? y : to, along_x ? to : x);
  };
  return sample(std::floor(at) + 1) - sample(std::floor(at));
}

Status DeformRoiPoolBackwardReference(const DeformRoiPoolBackward& op, const Context&,
                                      Tensor<const double, 4> grad_output, Tensor<const double, 4> input,
                                      Tensor<const double, 2> rois, std::optional<Tensor<const double, 4>> offset,
                                      std::optional<Tensor<double, 4>> grad_input,
                                      std::optional<Tensor<double, 4>> grad_offset) {
  const int64_t channels = input.dim(1), height = input.dim(2), width = input.dim(3);
  const int64_t bins = op.pooled_height * op.pooled_width;
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  if (grad_input) std::fill_n(grad_input->data(), grad_input->size(), 0.0);
  if (grad_offset) std::fill_n(grad_offset->data(), grad_offset->size(), 0.0);
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* roi = rois.data() + 5 * r;
    for (int64_t b = 0; b < bins; ++b) {
      const auto bin = reference::ShiftedBin(op, roi, offset ? offset->data() : nullptr, r, b);
      const double step_x = op.gamma * bin.width * static_cast<double>(op.pooled_width),
                   step_y = op.gamma * bin.height * static_cast<double>(op.pooled_height);
      const reference::BoxSamples samples(bin, {1, 1, op.Samples(), true}, height, width);
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t plane = (static_cast<int64_t>(roi[0]) * channels + c) * height * width;
        const double grad = grad_output[(r * channels + c) * bins + b] / samples.PerBin();
        samples.ForEach(0, 0, [&](double y, double x) {
          if (grad_input) reference::AddSampleClamped(grad_input->data() + plane, height, width, y, x, grad);
          if (!grad_offset || !offset) return;
          const double* pixels = input.data() + plane;
          (*grad_offset)[2 * r * bins + b] += grad * step_x * Slope(pixels, height, width, y, x, true);
          (*grad_offset)[(2 * r + 1) * bins + b] += grad * step_y * Slope(pixels, height, width, y, x, false);
        });
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(DeformRoiPoolBackward, DeformRoiPoolBackwardReference);

}  // namespace
}  // namespace polyop
