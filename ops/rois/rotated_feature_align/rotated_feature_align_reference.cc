// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/rois/rotated_feature_align/rotated_feature_align.h"

namespace polyop {
namespace {

double Sample(const double* plane, int64_t height, int64_t width, double y, double x) {
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return 0;
  y = std::clamp<double>(y, 0, static_cast<double>(height - 1));
  x = std::clamp<double>(x, 0, static_cast<double>(width - 1));
  const auto top = static_cast<int64_t>(y), left = static_cast<int64_t>(x);
  const int64_t bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
  const double dy = y - static_cast<double>(top), dx = x - static_cast<double>(left);
  return (1 - dy) * ((1 - dx) * plane[top * width + left] + dx * plane[top * width + right]) +
         dy * ((1 - dx) * plane[bottom * width + left] + dx * plane[bottom * width + right]);
}

Status RotatedFeatureAlignReference(const RotatedFeatureAlign& op, const Context&, Tensor<const double, 4> features,
                                    Tensor<const double, 4> boxes, Tensor<double, 4> output) {
  const int64_t channels = features.dim(1), height = features.dim(2), width = features.dim(3), pixels = height * width;
  for (int64_t i = 0; i < output.size(); ++i) {
    const int64_t plane = i / pixels, n = plane / channels;
    const double* box = boxes.data() + (n * pixels + i % pixels) * 5;
    output[i] = features[i];
    bool finite = true;
    for (int k = 0; k < 5; ++k) finite = finite && std::isfinite(box[k]);
    if (!finite) continue;
    // The centre, then the corners: the axes of the box are rotated by its angle.
    const double corners[5][2] = {{0, 0}, {1, 1}, {-1, 1}, {-1, -1}, {1, -1}};
    for (int64_t p = 0; p < op.points; ++p) {
      const double u = corners[p][0] * box[2] / 2, v = corners[p][1] * box[3] / 2;
      const double y = (box[0] + std::sin(box[4]) * u + std::cos(box[4]) * v) * op.spatial_scale;
      const double x = (box[1] + std::cos(box[4]) * u - std::sin(box[4]) * v) * op.spatial_scale;
      output[i] += Sample(features.data() + plane * pixels, height, width, y, x);
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(RotatedFeatureAlign, RotatedFeatureAlignReference);

}  // namespace
}  // namespace polyop
