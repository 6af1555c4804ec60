// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/rois/rotated_feature_align/rotated_feature_align_backward.h"
#include "ops/sampling/reference_sampling.h"

namespace polyop {
namespace {

Status RotatedFeatureAlignBackwardReference(const RotatedFeatureAlignBackward& op, const Context&,
                                            Tensor<const double, 4> grad_output, Tensor<const double, 4> features,
                                            Tensor<const double, 4> boxes, Tensor<double, 4> grad_features) {
  const int64_t channels = features.dim(1), height = features.dim(2), width = features.dim(3), pixels = height * width;
  std::copy_n(grad_output.data(), grad_output.size(), grad_features.data());
  for (int64_t i = 0; i < grad_output.size(); ++i) {
    const int64_t plane = i / pixels, n = plane / channels;
    const double* box = boxes.data() + (n * pixels + i % pixels) * 5;
    if (!std::all_of(box, box + 5, [](double v) { return std::isfinite(v); })) continue;
    const double corners[5][2] = {{0, 0}, {1, 1}, {-1, 1}, {-1, -1}, {1, -1}};
    for (int64_t p = 0; p < op.points; ++p) {
      const double u = corners[p][0] * box[2] / 2, v = corners[p][1] * box[3] / 2;
      const double y = (box[0] + std::sin(box[4]) * u + std::cos(box[4]) * v) * op.spatial_scale;
      const double x = (box[1] + std::cos(box[4]) * u - std::sin(box[4]) * v) * op.spatial_scale;
      reference::AddSampleClamped(grad_features.data() + plane * pixels, height, width, y, x, grad_output[i]);
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(RotatedFeatureAlignBackward, RotatedFeatureAlignBackwardReference);

}  // namespace
}  // namespace polyop
