#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "families/rois/roi_pool_reference.h"
#include "families/rois/rois.h"
#include "ops/bezier_align/bezier_align.h"

namespace polyop {
namespace {

using Point = std::complex<double>;

// By de Casteljau's construction.
Point OnCurve(Point a, Point b, Point c, Point d, double part) {
  const auto between = [part](Point from, Point to) { return from + part * (to - from); };
  const Point middle = between(b, c);
  return between(between(between(a, b), middle), between(middle, between(c, d)));
}

// Each bin is a box of one bin.
Status BezierAlignReference(const BezierAlign& op, const Context&, Tensor<const double, 4> input,
                            Tensor<const double, 2> rois, Tensor<double, 4> output) {
  const int64_t channels = input.dim(1), height = input.dim(2), width = input.dim(3);
  const int64_t rows = op.output_height, columns = op.output_width;
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  std::vector<double> pooled(static_cast<size_t>(channels));
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* roi = rois.data() + 17 * r;
    const double* planes = input.data() + static_cast<int64_t>(roi[0]) * channels * height * width;
    const bool finite = std::all_of(roi, roi + 17, [](double v) { return std::isfinite(v); });
    Point points[8];
    for (int p = 0; p < 8; ++p)
      points[p] = Point(roi[1 + 2 * p], roi[2 + 2 * p]) * static_cast<double>(op.spatial_scale);
    double wide =
        std::max(std::abs(points[0].real() - points[3].real()), std::abs(points[4].real() - points[7].real()));
    double high =
        std::max(std::abs(points[0].imag() - points[3].imag()), std::abs(points[4].imag() - points[7].imag()));
    if (!op.aligned) {
      wide = std::max(wide, 1.0);
      high = std::max(high, 1.0);
    }
    for (int64_t b = 0; b < rows * columns; ++b) {
      const double along = static_cast<double>(b % columns) / static_cast<double>(columns);
      const double down = static_cast<double>(b / columns) / static_cast<double>(rows);
      const Point upper = OnCurve(points[0], points[1], points[2], points[3], along);
      const Point lower = OnCurve(points[7], points[6], points[5], points[4], along);
      const Point middle = upper * (1 - down) + lower * down - (op.aligned ? Point(0.5, 0.5) : Point(0, 0));
      const double bin_width = wide / static_cast<double>(columns), bin_height = high / static_cast<double>(rows);
      const reference::PooledBox box{middle.real(),   middle.imag(), 0,          -bin_width / 2,
                                     -bin_height / 2, bin_width,     bin_height, finite};
      reference::PoolBox(box, {1, 1, op.sampling_ratio, true}, planes, channels, height, width, pooled.data());
      for (int64_t c = 0; c < channels; ++c) {
        output[(r * channels + c) * rows * columns + b] = pooled[static_cast<size_t>(c)];
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(BezierAlign, BezierAlignF64, BezierAlignReference);

}  // namespace
}  // namespace polyop
