// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/rois/batch_indices.h"
#include "ops/rois/roi_pool/roi_pool.h"

namespace polyop {
namespace {

// Returns whether bin b of a box from `low` to `high` contains the pixel at `position`.
bool IsInBin(const RoiPool& op, double low, double high, int64_t bins, int64_t b, int64_t position) {
  if (!std::isfinite(low) || !std::isfinite(high)) return false;
  const auto part = static_cast<double>(b), at = static_cast<double>(position);
  if (!op.rounded) {
    const double start = low * static_cast<double>(op.spatial_scale);
    const double size = ((high + 1) * static_cast<double>(op.spatial_scale) - start) / static_cast<double>(bins);
    return size > 0 && at >= std::floor(start + part * size) && at < std::ceil(start + (part + 1) * size);
  }
  const auto pixel = [&](double corner) {  // in float, as in torchvision
    return static_cast<double>(std::round(static_cast<float>(corner) * op.spatial_scale));
  };
  const double start = pixel(low), extent = std::max(pixel(high) - start + 1, 1.0);
  if (!std::isfinite(start) || !std::isfinite(extent)) return false;
  const float size = static_cast<float>(extent) / static_cast<float>(bins);
  return at >= start + static_cast<double>(std::floor(static_cast<float>(b) * size)) &&
         at < start + static_cast<double>(std::ceil(static_cast<float>(b + 1) * size));
}

Status RoiPoolReference(const RoiPool& op, const Context&, Tensor<const double, 4> input, Tensor<const double, 2> rois,
                        Tensor<double, 4> output, Tensor<int32_t, 4> argmax) {
  const int64_t channels = input.dim(1), width = input.dim(3);
  const int64_t height = width > 0 ? input.dim(2) : 0;  // an image of width 0 may have billions of rows
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  for (int64_t i = 0; i < output.size(); ++i) {
    const int64_t bx = i % op.output_width, by = i / op.output_width % op.output_height;
    const int64_t plane = i / op.output_width / op.output_height, c = plane % channels, r = plane / channels;
    const double* roi = rois.data() + 5 * r;
    const double* pixels = input.data() + (static_cast<int64_t>(roi[0]) * channels + c) * height * width;
    double largest = -std::numeric_limits<double>::infinity();
    output[i] = 0;
    argmax[i] = -1;
    for (int64_t y = 0; y < height; ++y) {
      if (!IsInBin(op, roi[2], roi[4], op.output_height, by, y)) continue;
      for (int64_t x = 0; x < width; ++x) {
        const double value = pixels[y * width + x];
        if (!(value > largest) || !IsInBin(op, roi[1], roi[3], op.output_width, bx, x)) continue;
        output[i] = largest = value;
        argmax[i] = static_cast<int32_t>(y * width + x);
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(RoiPool, RoiPoolReference);

}  // namespace
}  // namespace polyop
