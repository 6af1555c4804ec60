// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/feature_maps/carafe/carafe.h"

namespace polyop {
namespace {

constexpr int64_t kCarafeChannels = 8;  // channels that a thread sums with the masks of one output pixel

template <class T>
Status CarafeCuda(const Carafe& op, const CudaContext& cuda, Tensor<const T, 4> features, Tensor<const T, 4> masks,
                  Tensor<T, 4> output) {
  const int64_t height = features.dim(2), width = features.dim(3);
  const int64_t groups = features.dim(0) * op.group_size, channels = features.dim(1) / op.group_size;
  const int64_t kernel = op.kernel_size, half = kernel / 2;
  const Divider scale(static_cast<int64_t>(op.scale_factor)), out_width(output.dim(3)),
      out_pixels(output.dim(2) * output.dim(3)), parts(BlocksFor(channels, kCarafeChannels));
  const T *from = features.data(), *mask_data = masks.data();
  T* const to = output.data();
  return ForEach(cuda, groups * parts.divisor() * output.dim(2) * output.dim(3), [=] POLYOP_DEVICE(int64_t i) {
    int64_t out, part, column;
    const int64_t group = parts.Split(out_pixels.Split(i, &out), &part), row = out_width.Split(out, &column);
    const int64_t y = scale.Quotient(row), x = scale.Quotient(column);
    const int64_t first = part * kCarafeChannels,
                  held = channels - first < kCarafeChannels ? channels - first : kCarafeChannels;
    const T* const planes = from + (group * channels + first) * height * width;
    const T* const mask = mask_data + group * kernel * kernel * out_pixels.divisor() + out;
    float sums[kCarafeChannels] = {};
    for (int64_t ky = 0; ky < kernel; ++ky) {
      const int64_t at_y = y + ky - half;
      if (at_y < 0 || at_y >= height) continue;
      for (int64_t kx = 0; kx < kernel; ++kx) {
        const int64_t at_x = x + kx - half;
        if (at_x < 0 || at_x >= width) continue;
        const float weight = ToFloat(mask[(ky * kernel + kx) * out_pixels.divisor()]);
        const T* const pixel = planes + at_y * width + at_x;
        for (int64_t c = 0; c < held; ++c) sums[c] = std::fma(ToFloat(pixel[c * height * width]), weight, sums[c]);
      }
    }
    T* const result = to + (group * channels + first) * out_pixels.divisor() + out;
    for (int64_t c = 0; c < held; ++c) result[c * out_pixels.divisor()] = FromFloat<T>(sums[c]);
  });
}

POLYOP_CUDA_KERNELS(Carafe, CarafeCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
