// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/rois/batch_indices.h"
#include "ops/rois/prroi_pool/prroi_pool_backward.h"
#include "ops/rois/prroi_pool/prroi_pool_edges.h"

namespace polyop {
namespace {

// The surface over a plane: bilinear between pixels, and 0 from one pixel outside of the plane.
struct Surface {
  const double* plane;
  int64_t height, width;

  // Returns the value of the hat function of a pixel.
  static double Hat(double at, int64_t pixel) { return std::max(0.0, 1 - std::fabs(at - static_cast<double>(pixel))); }
  // Calls visit(middle, length) for the parts of [low, high] between pixels of an axis.
  template <class Visit>
  static void ForEachPart(double low, double high, int64_t extent, const Visit& visit) {
    const auto cell = [&](double at) {
      return static_cast<int64_t>(std::clamp(std::floor(at), -1.0, static_cast<double>(extent - 1)));
    };
    for (int64_t c = cell(low); c <= cell(high); ++c) {
      const double from = std::max(low, static_cast<double>(c)), to = std::min(high, static_cast<double>(c + 1));
      if (to > from) visit((from + to) / 2, to - from);
    }
  }
  // Calls visit(pixel, weight) for the pixels around a point.
  template <class Visit>
  void ForEachPixel(double y, double x, const Visit& visit) const {
    const auto first = [](double at, int64_t extent) {
      return static_cast<int64_t>(std::clamp(std::floor(at), -2.0, static_cast<double>(extent)));
    };
    for (int64_t row = first(y, height); row <= first(y, height) + 1; ++row) {
      for (int64_t column = first(x, width); column <= first(x, width) + 1; ++column) {
        const double weight = Hat(y, row) * Hat(x, column);
        if (weight != 0 && row >= 0 && row < height && column >= 0 && column < width)
          visit(row * width + column, weight);
      }
    }
  }
  double At(double y, double x) const {
    double sum = 0;
    ForEachPixel(y, x, [&](int64_t pixel, double weight) { sum += weight * plane[pixel]; });
    return sum;
  }
};

Status PrRoiPoolBackwardReference(const PrRoiPoolBackward& op, const Context&, Tensor<const double, 4> grad_output,
                                  Tensor<const double, 4> features, Tensor<const double, 2> rois,
                                  Tensor<const double, 4> output, std::optional<Tensor<double, 4>> grad_features,
                                  std::optional<Tensor<double, 2>> grad_rois) {
  const int64_t channels = features.dim(1), height = features.dim(2), width = features.dim(3);
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, features.dim(0)));
  if (grad_features) std::fill_n(grad_features->data(), grad_features->size(), 0.0);
  if (grad_rois) std::fill_n(grad_rois->data(), grad_rois->size(), 0.0);
  if (height * width == 0) return Status::Ok();  // pooling an empty map gives 0 for every box
  for (int64_t i = 0; i < grad_output.size(); ++i) {
    const int64_t bx = i % op.pooled_width, by = i / op.pooled_width % op.pooled_height;
    const int64_t c = i / op.pooled_width / op.pooled_height % channels,
                  r = i / op.pooled_width / op.pooled_height / channels;
    const double* roi = rois.data() + 5 * r;
    const int64_t plane = (static_cast<int64_t>(roi[0]) * channels + c) * height * width;
    const Surface surface{features.data() + plane, height, width};
    const auto rows = static_cast<double>(op.pooled_height), columns = static_cast<double>(op.pooled_width);
    const double s = op.spatial_scale, bin_w = (roi[3] - roi[1]) * s / columns, bin_h = (roi[4] - roi[2]) * s / rows;
    if (!std::all_of(roi + 1, roi + 5, [](double v) { return std::isfinite(v); })) continue;
    if (!(bin_w > 0) || !(bin_h > 0)) continue;
    const double left = roi[1] * s + bin_w * static_cast<double>(bx), right = left + bin_w;
    const double top = roi[2] * s + bin_h * static_cast<double>(by), bottom = top + bin_h;
    if (grad_features) {
      Surface::ForEachPart(top, bottom, height, [&](double y, double high) {
        Surface::ForEachPart(left, right, width, [&](double x, double wide) {
          surface.ForEachPixel(y, x, [&](int64_t pixel, double weight) {
            (*grad_features)[plane + pixel] += grad_output[i] * weight * (high / bin_h) * (wide / bin_w);
          });
        });
      });
    }
    if (!grad_rois) continue;
    double at_left = 0, at_right = 0, at_top = 0, at_bottom = 0;  // averages over the edges
    Surface::ForEachPart(top, bottom, height, [&](double y, double high) {
      at_left += surface.At(y, left) * high / bin_h;
      at_right += surface.At(y, right) * high / bin_h;
    });
    Surface::ForEachPart(left, right, width, [&](double x, double wide) {
      at_top += surface.At(top, x) * wide / bin_w;
      at_bottom += surface.At(bottom, x) * wide / bin_w;
    });
    const PreciseEnds x = PreciseEnds::Of(static_cast<double>(bx), columns, bin_w, output[i], at_left, at_right);
    const PreciseEnds y = PreciseEnds::Of(static_cast<double>(by), rows, bin_h, output[i], at_top, at_bottom);
    double* const to = grad_rois->data() + 5 * r;
    to[1] += grad_output[i] * s * x.low;
    to[2] += grad_output[i] * s * y.low;
    to[3] += grad_output[i] * s * x.high;
    to[4] += grad_output[i] * s * y.high;
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(PrRoiPoolBackward, PrRoiPoolBackwardReference);

}  // namespace
}  // namespace polyop
