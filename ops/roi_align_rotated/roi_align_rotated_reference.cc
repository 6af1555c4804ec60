#include <cmath>

#include "families/sampling/reference_sampling.h"
#include "ops/roi_align_rotated/roi_align_rotated.h"

namespace polyop {
namespace {

Status RoiAlignRotatedReference(const RoiAlignRotated& op, const Context&, Tensor<const double, 4> input,
                                Tensor<const double, 2> rois, Tensor<double, 4> output) {
  const int64_t channels = input.dim(1), height = input.dim(2), width = input.dim(3);
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* roi = rois.data() + 6 * r;
    const double shift = op.aligned ? 0.5 : 0, scale = op.spatial_scale;
    const double centre_x = roi[1] * scale - shift, centre_y = roi[2] * scale - shift;
    double roi_width = roi[3] * scale, roi_height = roi[4] * scale;
    if (!op.aligned) {
      roi_width = std::fmax(roi_width, 1);
      roi_height = std::fmax(roi_height, 1);
    }
    const double theta = op.clockwise ? -roi[5] : roi[5];
    bool finite = true;
    for (int k = 1; k < 6; ++k) finite = finite && std::isfinite(roi[k]);
    const double bin_height = roi_height / static_cast<double>(op.output_height),
                 bin_width = roi_width / static_cast<double>(op.output_width);
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
          double sum = 0;
          for (int64_t iy = 0; iy < rows; ++iy) {
            for (int64_t ix = 0; ix < columns; ++ix) {
              const double yy = -roi_height / 2 + static_cast<double>(by) * bin_height +
                                (static_cast<double>(iy) + 0.5) * bin_height / static_cast<double>(rows);
              const double xx = -roi_width / 2 + static_cast<double>(bx) * bin_width +
                                (static_cast<double>(ix) + 0.5) * bin_width / static_cast<double>(columns);
              sum +=
                  reference::SampleClamped(plane, height, width, yy * std::cos(theta) - xx * std::sin(theta) + centre_y,
                                           yy * std::sin(theta) + xx * std::cos(theta) + centre_x);
            }
          }
          output[((r * channels + c) * op.output_height + by) * op.output_width + bx] =
              rows * columns > 0 ? sum / static_cast<double>(rows * columns) : 0;
        }
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(RoiAlignRotated, RoiAlignRotatedF64, RoiAlignRotatedReference);

}  // namespace
}  // namespace polyop
