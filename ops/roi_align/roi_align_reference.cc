#include <cmath>
#include <limits>

#include "families/sampling/reference_sampling.h"
#include "ops/roi_align/roi_align.h"

namespace polyop {
namespace {

Status RoiAlignReference(const RoiAlign& op, const Context&, Tensor<const double, 4> input,
                         Tensor<const double, 2> rois, Tensor<double, 4> output) {
  const int64_t channels = input.dim(1), height = input.dim(2), width = input.dim(3);
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* roi = rois.data() + 5 * r;
    const double shift = op.aligned ? 0.5 : 0, scale = op.spatial_scale;
    const double left = roi[1] * scale - shift, top = roi[2] * scale - shift;
    double roi_width = roi[3] * scale - shift - left, roi_height = roi[4] * scale - shift - top;
    if (!op.aligned) {
      roi_width = std::fmax(roi_width, 1);
      roi_height = std::fmax(roi_height, 1);
    }
    const double bin_height = roi_height / static_cast<double>(op.output_height);
    const double bin_width = roi_width / static_cast<double>(op.output_width);
    const bool finite =
        std::isfinite(left) && std::isfinite(top) && std::isfinite(roi_width) && std::isfinite(roi_height);
    const auto samples = [&](double bin) -> int64_t {
      if (!finite) return 0;
      const double pixels = std::ceil(bin);
      return op.sampling_ratio > 0 ? op.sampling_ratio : pixels > 0 && pixels < 9e15 ? static_cast<int64_t>(pixels) : 0;
    };
    const int64_t rows = samples(bin_height), columns = samples(bin_width);
    for (int64_t c = 0; c < channels; ++c) {
      const double* plane = input.data() + (static_cast<int64_t>(roi[0]) * channels + c) * height * width;
      for (int64_t by = 0; by < op.output_height; ++by) {
        for (int64_t bx = 0; bx < op.output_width; ++bx) {
          double sum = 0, largest = -std::numeric_limits<double>::infinity();
          for (int64_t iy = 0; iy < rows; ++iy) {
            for (int64_t ix = 0; ix < columns; ++ix) {
              const double y = top + static_cast<double>(by) * bin_height +
                               (static_cast<double>(iy) + 0.5) * bin_height / static_cast<double>(rows);
              const double x = left + static_cast<double>(bx) * bin_width +
                               (static_cast<double>(ix) + 0.5) * bin_width / static_cast<double>(columns);
              const double value = reference::SampleClamped(plane, height, width, y, x);
              sum += value;
              largest = value > largest ? value : largest;
            }
          }
          const bool any = rows * columns > 0;
          const double pooled = op.mode == RoiAlign::Mode::kAvg ? (any ? sum / static_cast<double>(rows * columns) : 0)
                                                                : (std::isinf(largest) && largest < 0 ? 0 : largest);
          output[((r * channels + c) * op.output_height + by) * op.output_width + bx] = pooled;
        }
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(RoiAlign, RoiAlignF64, RoiAlignReference);

}  // namespace
}  // namespace polyop
