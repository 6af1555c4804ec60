// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/feature_maps/carafe/carafe_backward.h"

namespace polyop {
namespace {

struct CarafeSizes {
  int64_t images;    // and groups
  int64_t channels;  // of a group
  int64_t height, width, scale, kernel, out_height, out_width;

  POLYOP_HD int64_t half() const { return kernel / 2; }
  POLYOP_HD int64_t pixels() const { return height * width; }
  POLYOP_HD int64_t out_pixels() const { return out_height * out_width; }
};

// Each thread sums the gradients of one pixel of several channels: over the output pixels whose windows contain it.
template <class T>
Status FeaturesBackwardCuda(const CudaContext& cuda, const CarafeSizes& s, const T* grad_output, const T* masks,
                            T* grad_features) {
  constexpr int64_t kChannels = 8;
  const Divider parts(BlocksFor(s.channels, kChannels)), by_pixels(s.pixels()), by_width(s.width);
  return ForEach(cuda, s.images * BlocksFor(s.channels, kChannels) * s.pixels(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t pixel, part, x;
    const int64_t image = parts.Split(by_pixels.Split(i, &pixel), &part), y = by_width.Split(pixel, &x);
    const int64_t first = part * kChannels, held = s.channels - first < kChannels ? s.channels - first : kChannels;
    const T* const grads = grad_output + (image * s.channels + first) * s.out_pixels();
    float sums[kChannels] = {};
    for (int64_t position = 0; position < s.kernel * s.kernel; ++position) {
      const int64_t middle_y = y - position / s.kernel + s.half(), middle_x = x - position % s.kernel + s.half();
      if (middle_y < 0 || middle_y >= s.height || middle_x < 0 || middle_x >= s.width) continue;
      const T* const mask = masks + (image * s.kernel * s.kernel + position) * s.out_pixels();
      for (int64_t row = middle_y * s.scale; row < (middle_y + 1) * s.scale; ++row) {
        for (int64_t column = middle_x * s.scale; column < (middle_x + 1) * s.scale; ++column) {
          const int64_t out = row * s.out_width + column;
          const float weight = ToFloat(mask[out]);
          for (int64_t c = 0; c < held; ++c) {
            sums[c] = std::fma(ToFloat(grads[c * s.out_pixels() + out]), weight, sums[c]);
          }
        }
      }
    }
    T* const to = grad_features + (image * s.channels + first) * s.pixels() + pixel;
    for (int64_t c = 0; c < held; ++c) to[c * s.pixels()] = FromFloat<T>(sums[c]);
  });
}

// Each thread sums the products of gradients and features over the channels, for several columns of a window's row.
template <class T>
Status MasksBackwardCuda(const CudaContext& cuda, const CarafeSizes& s, const T* grad_output, const T* features,
                         T* grad_masks) {
  constexpr int64_t kColumns = 5;
  const Divider parts(BlocksFor(s.kernel, kColumns)), rows(s.kernel), by_pixels(s.out_pixels()), by_width(s.out_width),
      by_scale(s.scale);
  const int64_t count = s.images * s.kernel * BlocksFor(s.kernel, kColumns) * s.out_pixels();
  return ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) {
    int64_t out, part, ky, column;
    const int64_t image = rows.Split(parts.Split(by_pixels.Split(i, &out), &part), &ky);
    const int64_t row = by_width.Split(out, &column);
    const int64_t y = by_scale.Quotient(row) + ky - s.half(), first = part * kColumns;
    const int64_t x = by_scale.Quotient(column) + first - s.half();
    const int64_t held = s.kernel - first < kColumns ? s.kernel - first : kColumns;
    const T* const grads = grad_output + image * s.channels * s.out_pixels() + out;
    const T* const pixels = features + image * s.channels * s.pixels() + y * s.width + x;
    float sums[kColumns] = {};
    for (int64_t c = 0; y >= 0 && y < s.height && c < s.channels; ++c) {
      const float grad = ToFloat(grads[c * s.out_pixels()]);
      for (int64_t k = 0; k < held; ++k) {
        if (x + k < 0 || x + k >= s.width) continue;  // such a mask has no gradient, also if `grad` is NaN
        sums[k] = std::fma(ToFloat(pixels[c * s.pixels() + k]), grad, sums[k]);
      }
    }
    T* const to = grad_masks + ((image * s.kernel + ky) * s.kernel + first) * s.out_pixels() + out;
    for (int64_t k = 0; k < held; ++k) to[k * s.out_pixels()] = FromFloat<T>(sums[k]);
  });
}

template <class T>
Status CarafeBackwardCuda(const CarafeBackward& op, const CudaContext& cuda, Tensor<const T, 4> grad_output,
                          Tensor<const T, 4> features, Tensor<const T, 4> masks,
                          std::optional<Tensor<T, 4>> grad_features, std::optional<Tensor<T, 4>> grad_masks) {
  const CarafeSizes sizes{features.dim(0) * op.group_size,
                          features.dim(1) / op.group_size,
                          features.dim(2),
                          features.dim(3),
                          static_cast<int64_t>(op.scale_factor),
                          op.kernel_size,
                          grad_output.dim(2),
                          grad_output.dim(3)};
  if (grad_features) {
    POLYOP_RETURN_IF_ERROR(FeaturesBackwardCuda(cuda, sizes, grad_output.data(), masks.data(), grad_features->data()));
  }
  if (!grad_masks) return cuda.Check();
  return MasksBackwardCuda(cuda, sizes, grad_output.data(), features.data(), grad_masks->data());
}

POLYOP_CUDA_KERNELS(CarafeBackward, CarafeBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
