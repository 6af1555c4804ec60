// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/rois/batch_indices.h"
#include "ops/rois/prroi_pool/prroi_pool.h"

namespace polyop {
namespace {

// Integrates the surface between the four pixels of each cell over the part of the cell that is in the bin. The
// integral of a bilinear function over a rectangle is the area times the value at the centre.
Status PrRoiPoolReference(const PrRoiPool& op, const Context&, Tensor<const double, 4> features,
                          Tensor<const double, 2> rois, Tensor<double, 4> output) {
  const int64_t channels = features.dim(1), height = features.dim(2), width = features.dim(3);
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, features.dim(0)));
  for (int64_t i = 0; i < output.size(); ++i) {
    const int64_t bx = i % op.pooled_width, by = i / op.pooled_width % op.pooled_height;
    const int64_t c = i / op.pooled_width / op.pooled_height % channels,
                  r = i / op.pooled_width / op.pooled_height / channels;
    const double* roi = rois.data() + 5 * r;
    const double* plane = features.data() + (static_cast<int64_t>(roi[0]) * channels + c) * height * width;
    const auto value = [&](int64_t y, int64_t x) {
      return y < 0 || y >= height || x < 0 || x >= width ? 0.0 : plane[y * width + x];
    };
    const double s = op.spatial_scale, bin_w = (roi[3] - roi[1]) * s / static_cast<double>(op.pooled_width),
                 bin_h = (roi[4] - roi[2]) * s / static_cast<double>(op.pooled_height);
    output[i] = 0;
    bool finite = true;
    for (int64_t k = 1; k < 5; ++k) finite = finite && std::isfinite(roi[k]);
    if (!finite || !(bin_w > 0) || !(bin_h > 0)) continue;
    const double left = roi[1] * s + bin_w * static_cast<double>(bx), right = left + bin_w;
    const double top = roi[2] * s + bin_h * static_cast<double>(by), bottom = top + bin_h;
    const auto cell = [](double at, int64_t extent) {  // cells begin at a pixel; -1 is the one before the first pixel
      return static_cast<int64_t>(std::clamp(std::floor(at), -1.0, static_cast<double>(extent)));
    };
    double sum = 0;
    for (int64_t y = cell(top, height); y <= std::min(cell(bottom, height), height - 1); ++y) {
      for (int64_t x = cell(left, width); x <= std::min(cell(right, width), width - 1); ++x) {
        const double y0 = std::max(top - static_cast<double>(y), 0.0),
                     y1 = std::min(bottom - static_cast<double>(y), 1.0);
        const double x0 = std::max(left - static_cast<double>(x), 0.0),
                     x1 = std::min(right - static_cast<double>(x), 1.0);
        if (y1 <= y0 || x1 <= x0) continue;
        const double dy = (y0 + y1) / 2, dx = (x0 + x1) / 2;
        const double upper = (1 - dx) * value(y, x) + dx * value(y, x + 1);
        const double lower = (1 - dx) * value(y + 1, x) + dx * value(y + 1, x + 1);
        sum += ((1 - dy) * upper + dy * lower) * ((y1 - y0) / bin_h) * ((x1 - x0) / bin_w);
      }
    }
    output[i] = sum;
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(PrRoiPool, PrRoiPoolReference);

}  // namespace
}  // namespace polyop
