#include <cmath>

#include "families/sampling/reference_sampling.h"
#include "ops/multi_level_rotated_roi_align/multi_level_rotated_roi_align.h"

namespace polyop {
namespace {

Status MultiLevelRotatedRoiAlignReference(const MultiLevelRotatedRoiAlign& op, const Context&,
                                          Tensor<const double, 2> rois, TensorList<const double, 4> feats,
                                          Tensor<double, 4> output) {
  const int64_t channels = output.dim(1);
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* roi = rois.data() + 6 * r;
    double width = roi[3], height = roi[4];
    const double theta = op.clockwise ? -roi[5] : roi[5], centre_x = roi[1], centre_y = roi[2];
    int level = 0;  // the largest level whose boxes begin at finest_scale * 2^level
    while (level + 1 < feats.size() &&
           std::sqrt(width * height) / static_cast<double>(op.finest_scale) + 1e-6 >= std::exp2(level + 1))
      ++level;
    if (op.roi_scale_factor > 0) {
      width *= op.roi_scale_factor;
      height *= op.roi_scale_factor;
    }
    const Tensor<const double, 4>& feat = feats[level];
    const double shift = op.aligned ? 0.5 : 0, scale = 1.0 / op.featmap_strides[level];
    const double x0 = centre_x * scale - shift, y0 = centre_y * scale - shift;
    double w = width * scale, h = height * scale;
    bool finite = true;
    for (int k = 1; k < 6; ++k) finite = finite && std::isfinite(roi[k]);
    if (!op.aligned) {
      w = std::fmax(w, 1);
      h = std::fmax(h, 1);
    }
    const double bin_h = h / static_cast<double>(op.output_height), bin_w = w / static_cast<double>(op.output_width);
    const auto samples = [&](double bin) -> int64_t {
      if (!finite) return 0;
      const double pixels = std::ceil(bin);
      return op.sampling_ratio > 0 ? op.sampling_ratio : pixels > 0 && pixels < 9e15 ? static_cast<int64_t>(pixels) : 0;
    };
    const int64_t rows = samples(bin_h), columns = samples(bin_w);
    for (int64_t c = 0; c < channels; ++c) {
      const double* plane = feat.data() + (static_cast<int64_t>(roi[0]) * channels + c) * feat.dim(2) * feat.dim(3);
      for (int64_t by = 0; by < op.output_height; ++by) {
        for (int64_t bx = 0; bx < op.output_width; ++bx) {
          double sum = 0;
          for (int64_t iy = 0; iy < rows; ++iy) {
            for (int64_t ix = 0; ix < columns; ++ix) {
              const double v =
                  -h / 2 +
                  (static_cast<double>(by) + (static_cast<double>(iy) + 0.5) / static_cast<double>(rows)) * bin_h;
              const double u =
                  -w / 2 +
                  (static_cast<double>(bx) + (static_cast<double>(ix) + 0.5) / static_cast<double>(columns)) * bin_w;
              const double y = v * std::cos(theta) - u * std::sin(theta) + y0,
                           x = v * std::sin(theta) + u * std::cos(theta) + x0;
              sum += reference::SampleClamped(plane, feat.dim(2), feat.dim(3), y, x);
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
POLYOP_REFERENCE_KERNEL(MultiLevelRotatedRoiAlign, MultiLevelRotatedRoiAlignF64, MultiLevelRotatedRoiAlignReference);

}  // namespace
}  // namespace polyop
