// SPDX-License-Identifier: Apache-2.0
// Samples images and volumes at points on the GPU.
#pragma once

#include "kernels/cuda/cuda.h"
#include "ops/resize/cubic.h"
#include "ops/sampling/grid_rule.h"

namespace polyop {
namespace grid_internal {

inline constexpr int64_t kChannels = 16;  // channels per thread and point

struct Axis {
  GridRule::Padding padding;
  bool align_corners;
  int64_t extent;
  bool in_pixels;  // coordinates are pixels, not normalised

  POLYOP_HD float Last() const { return static_cast<float>(extent - 1); }

  // Converts from [-1, 1] to pixels, clamped to 2^24. With zero padding, NaN becomes a position outside.
  POLYOP_HD float Unnormalize(float normalized) const {
    const float up = normalized + 1.0f;
    const float x = in_pixels       ? normalized
                    : align_corners ? up * 0.5f * Last()
                                    : (up * static_cast<float>(extent) - 1.0f) * 0.5f;
    constexpr float kFar = 16777216.0f;
    if (padding == GridRule::Padding::kZeros && !std::isfinite(x)) return -kFar;
    if (padding == GridRule::Padding::kBorder && x != x) return 0;
    if (padding == GridRule::Padding::kReflection && !std::isfinite(x)) return 0;
    return x < -kFar ? -kFar : x > kFar ? kFar : x;
  }
  // Reflects x at the outer pixels' centres or edges until it is between them.
  POLYOP_HD float Reflect(float x) const {
    const float low = align_corners ? 0.0f : -0.5f;
    const float period = 2 * static_cast<float>(align_corners ? extent - 1 : extent);
    if (period == 0) return 0;
    const float at = std::fabs(x - low), rest = at - std::floor(at / period) * period;
    return (rest < period - rest ? rest : period - rest) + low;
  }
  // Applies the padding rule. With zero padding, x is unchanged.
  POLYOP_HD float Pad(float x) const {
    if (padding == GridRule::Padding::kZeros) return x;
    if (padding == GridRule::Padding::kReflection) x = Reflect(x);
    return x < 0 ? 0 : x > Last() ? Last() : x;
  }
  // Converts a pixel coordinate to an index, or -1 if it is outside.
  POLYOP_HD int32_t Pixel(float x) const { return x >= 0 && x <= Last() ? static_cast<int32_t>(x) : -1; }
};

// The axes x, y and z of an input [N, C, ...]; an image has one layer.
struct Axes {
  Axis of[3];

  Axes(const GridRule& rule, const Shape& input, bool in_pixels) {
    for (int a = 0; a < 3; ++a) {
      const int64_t extent = a < input.rank() - 2 ? input[input.rank() - 1 - a] : 1;
      of[a] = {rule.padding_mode, rule.align_corners, extent, in_pixels};
    }
  }
  POLYOP_HD const Axis& operator[](int a) const { return of[a]; }
  int64_t Pixels() const { return of[0].extent * of[1].extent * of[2].extent; }
};

// The pixels of a sample along one axis: 1 (nearest), 2 (linear) or 4 (cubic).
template <int kTaps>
struct AxisTaps {
  int32_t index[kTaps];  // -1: outside
  float weight[kTaps];

  POLYOP_HD static AxisTaps Of(const Axis& axis, float normalized) {
    AxisTaps taps;
    float x = axis.Unnormalize(normalized);
    if constexpr (kTaps == 4) {
      const float base = std::floor(x);
      CubicWeights(x - base, taps.weight);
      for (int k = 0; k < 4; ++k) taps.index[k] = axis.Pixel(axis.Pad(base + static_cast<float>(k - 1)));
    } else if constexpr (kTaps == 1) {
      taps.index[0] = axis.Pixel(std::rint(axis.Pad(x)));
      taps.weight[0] = 1;
    } else {
      x = axis.Pad(x);
      const float base = std::floor(x);
      float next = base + 1;
      taps.weight[1] = x - base;
      if (axis.padding != GridRule::Padding::kZeros && next > axis.Last()) {
        // On the last pixel, both taps are half of that pixel, because 0 times infinity would be NaN.
        taps.weight[1] = 0.5f;
        next = axis.Last();
      }
      taps.weight[0] = 1 - taps.weight[1];
      taps.index[0] = axis.Pixel(base);
      taps.index[1] = axis.Pixel(next);
    }
    return taps;
  }
};

// Each thread finds the taps of a point once for several channels.
template <class T, int kAxes, int kTaps, class Points>
Status Sample(const GridRule& rule, const CudaContext& cuda, const Tensor<const T, kAxes + 2>& input,
              const Points& where, const Tensor<T, kAxes + 2>& output) {
  const Axes axes(rule, input.shape(), Points::kInPixels);
  const int64_t channels = input.dim(1), plane_size = axes.Pixels();
  const T* const from = input.data();
  T* const to = output.data();
  constexpr int kTapsZ = kAxes == 3 ? kTaps : 1;
  const Divider points(output.size() / output.dim(0) / channels), parts(BlocksFor(channels, kChannels));
  return ForEach(cuda, input.dim(0) * parts.divisor() * points.divisor(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t point, part;
    const int64_t n = parts.Split(points.Split(i, &point), &part);
    float at[kAxes];
    where.At(n, point, at);
    const auto xs = AxisTaps<kTaps>::Of(axes[0], at[0]);
    const auto ys = AxisTaps<kTaps>::Of(axes[1], at[1]);
    AxisTaps<kTapsZ> zs;
    if constexpr (kAxes == 3) {
      zs = AxisTaps<kTaps>::Of(axes[2], at[kAxes - 1]);
    } else {
      zs.index[0] = 0;
      zs.weight[0] = 1;
    }
    const int64_t last = (part + 1) * kChannels < channels ? (part + 1) * kChannels : channels;
    for (int64_t c = part * kChannels; c < last; ++c) {
      const T* const plane = from + (n * channels + c) * plane_size;
      // All pixels are loaded before the first is used.
      T value[kTapsZ][kTaps][kTaps];
      for (int z = 0; z < kTapsZ; ++z) {
        for (int y = 0; y < kTaps; ++y) {
          const bool inside = zs.index[z] >= 0 && ys.index[y] >= 0;
          const T* const row = plane + (zs.index[z] * axes[1].extent + ys.index[y]) * axes[0].extent;
          for (int x = 0; x < kTaps; ++x) {
            value[z][y][x] = inside && xs.index[x] >= 0 ? row[xs.index[x]] : FromFloat<T>(0);
          }
        }
      }
      float sum = 0;
      for (int z = 0; z < kTapsZ; ++z) {
        for (int y = 0; y < kTaps; ++y) {
          float across = 0;
          for (int x = 0; x < kTaps; ++x) across = std::fma(ToFloat(value[z][y][x]), xs.weight[x], across);
          sum = std::fma(across, ys.weight[y] * zs.weight[z], sum);
        }
      }
      to[(n * channels + c) * points.divisor() + point] = FromFloat<T>(sum);
    }
  });
}

}  // namespace grid_internal

/// Samples input [N, C, ...] at points to output [N, C, ...]. Coordinates are normalised, -1 to 1 across an image, or
/// pixels. `Points` is a struct with
///   static constexpr bool kInPixels;
///   POLYOP_HD void At(int64_t image, int64_t point, float at[kAxes]) const;   // x, y (and z)
template <int kAxes, class T, class Points>
Status SampleCuda(const CudaContext& cuda, const GridRule& rule, const Tensor<const T, kAxes + 2>& input,
                  const Points& points, const Tensor<T, kAxes + 2>& output) {
  switch (rule.interpolation_mode) {
    case GridRule::Interpolation::kNearest:
      return grid_internal::Sample<T, kAxes, 1>(rule, cuda, input, points, output);
    case GridRule::Interpolation::kBilinear:
      return grid_internal::Sample<T, kAxes, 2>(rule, cuda, input, points, output);
    case GridRule::Interpolation::kBicubic:
      if constexpr (kAxes == 2) return grid_internal::Sample<T, 2, 4>(rule, cuda, input, points, output);
  }
  return Internal("unknown interpolation mode");
}

}  // namespace polyop
