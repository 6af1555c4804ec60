// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/rois/roi_sample.h"
#include "ops/rois/rotated_feature_align/rotated_feature_align.h"

namespace polyop {
namespace {

constexpr int64_t kAlignedChannels = 16;  // channels per thread

// Each thread computes the samples of a pixel once and uses them for several channels.
template <class T>
Status RotatedFeatureAlignCuda(const RotatedFeatureAlign& op, const CudaContext& cuda, Tensor<const T, 4> features,
                               Tensor<const T, 4> boxes, Tensor<T, 4> output) {
  const int64_t channels = features.dim(1), height = features.dim(2), width = features.dim(3);
  const T *from = features.data(), *box_data = boxes.data();
  T* const to = output.data();
  const double scale = op.spatial_scale;
  const int points = op.points == 1 ? 1 : 5;
  const Divider pixels(height * width), parts(BlocksFor(channels, kAlignedChannels));
  return ForEach(cuda, features.dim(0) * parts.divisor() * height * width, [=] POLYOP_DEVICE(int64_t i) {
    int64_t pixel, part;
    const int64_t n = parts.Split(pixels.Split(i, &pixel), &part);
    const T* const box = box_data + (n * pixels.divisor() + pixel) * 5;
    double v[5];
    for (int k = 0; k < 5; ++k) v[k] = ToFloat(box[k]);
    const double y = v[0] * scale, x = v[1] * scale, half_w = v[2] * scale / 2, half_h = v[3] * scale / 2;
    const double wx = std::cos(v[4]) * half_w, wy = std::sin(v[4]) * half_w;
    const double hx = -std::sin(v[4]) * half_h, hy = std::cos(v[4]) * half_h;
    RoiSample samples[5];
    const bool finite = std::isfinite(y + x + half_w + half_h + v[4]);
    for (int p = 0; finite && p < points; ++p) {  // the centre, then the corners
      const double u = p == 0 ? 0 : p == 1 || p == 4 ? 1 : -1, w = p == 0 ? 0 : p < 3 ? 1 : -1;
      samples[p] = {RoiTaps(y + u * wy + w * hy, height), RoiTaps(x + u * wx + w * hx, width)};
    }
    const int64_t last = (part + 1) * kAlignedChannels < channels ? (part + 1) * kAlignedChannels : channels;
    for (int64_t c = part * kAlignedChannels; c < last; ++c) {
      const T* const plane = from + (n * channels + c) * pixels.divisor();
      float sum = ToFloat(plane[pixel]);
      for (int p = 0; p < points; ++p) sum += samples[p].Of(plane, width);
      to[(n * channels + c) * pixels.divisor() + pixel] = FromFloat<T>(sum);
    }
  });
}

POLYOP_CUDA_KERNELS(RotatedFeatureAlign, RotatedFeatureAlignCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
