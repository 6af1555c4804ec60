// SPDX-License-Identifier: Apache-2.0
// Grid sampling in double precision, sample by sample: for reference kernels only.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/status.h"
#include "core/tensor.h"
#include "ops/sampling/grid_rule.h"

namespace polyop::reference {
namespace grid_internal {

// Reflects repeatedly until the coordinate is inside, as in the definition.
inline double Mirror(double x, double low, double high) {
  if (low == high) return 0;
  const double period = 2 * (high - low);
  x = std::abs(std::remainder(x - low, period));
  return low + x;
}

// Applies the padding rule to a coordinate.
inline double Pad(double x, int64_t extent, const GridRule& op) {
  const double last = static_cast<double>(extent - 1);
  switch (op.padding_mode) {
    case GridRule::Padding::kZeros: return x;
    case GridRule::Padding::kReflection: x = op.align_corners ? Mirror(x, 0, last) : Mirror(x, -0.5, last + 0.5); break;
    case GridRule::Padding::kBorder: break;
  }
  return std::isnan(x) ? 0 : std::fmin(std::fmax(x, 0), last);
}

inline double Cubic(double x) {
  constexpr double a = -0.75;
  x = std::abs(x);
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

struct Taps {
  int count = 0;
  int64_t index[4];  // -1 if outside, where pixels are 0
  double weight[4];
  double slope[4];  // derivatives of the weights with respect to the grid's coordinate; 0 if it is not finite
};

// Returns the derivative of Pad: 0 where a coordinate is clamped.
inline double PadSlope(double x, int64_t extent, const GridRule& op) {
  if (op.padding_mode == GridRule::Padding::kZeros) return 1;
  const double padded = Pad(x, extent, op);
  if (!(padded > 0 && padded < static_cast<double>(extent - 1))) return 0;
  if (op.padding_mode == GridRule::Padding::kBorder) return 1;
  const double low = op.align_corners ? 0 : -0.5, span = static_cast<double>(op.align_corners ? extent - 1 : extent);
  return std::fmod(std::floor((x - low) / span), 2) == 0 ? 1 : -1;
}

inline double CubicSlope(double x) {
  constexpr double a = -0.75;
  const double sign = x < 0 ? -1 : 1;
  x = std::abs(x);
  if (x <= 1) return sign * (3 * (a + 2) * x * x - 2 * (a + 3) * x);
  return x < 2 ? sign * (3 * a * x * x - 10 * a * x + 8 * a) : 0;
}

inline Taps AxisTaps(double normalized, int64_t extent, const GridRule& op) {
  Taps taps;
  if (extent == 0) return taps;
  const double size = static_cast<double>(extent);
  double x = op.align_corners ? (normalized + 1) / 2 * (size - 1) : ((normalized + 1) * size - 1) / 2;
  const double step = std::isfinite(normalized) ? (op.align_corners ? size - 1 : size) / 2 : 0;
  const auto add = [&](double index, double weight, double slope) {
    taps.slope[taps.count] = step == 0 ? 0 : slope * step;
    taps.index[taps.count] = index >= 0 && index < size ? static_cast<int64_t>(index) : -1;
    taps.weight[taps.count++] = weight;
  };
  if (op.padding_mode == GridRule::Padding::kZeros && !std::isfinite(x)) return taps;
  if (op.interpolation_mode == GridRule::Interpolation::kBicubic) {
    if (std::isnan(x) || (std::isinf(x) && op.padding_mode == GridRule::Padding::kReflection)) x = 0;
    if (std::isinf(x)) x = x > 0 ? size + 5 : -5;
    for (int i = -1; i <= 2; ++i) {
      const double from = x - std::floor(x) - i;
      add(Pad(std::floor(x) + i, extent, op), Cubic(from), CubicSlope(from));
    }
    return taps;
  }
  const double slope = PadSlope(x, extent, op);
  x = Pad(x, extent, op);
  if (op.interpolation_mode == GridRule::Interpolation::kNearest) {
    add(std::nearbyint(x), 1, 0);
  } else {
    add(std::floor(x), std::floor(x) + 1 - x, -slope);
    add(std::floor(x) + 1, x - std::floor(x), slope);
  }
  return taps;
}

}  // namespace grid_internal

/// Samples input [N, C, ...] at points [N, ...] to output [N, C, ...]. Coordinates x, y (and z) are normalised: -1 to 1
/// across an image.
template <int kAxes>
Status SampleGrid(const GridRule& op, const Tensor<const double, kAxes + 2>& input, const double* grid,
                  const Tensor<double, kAxes + 2>& output) {
  const int64_t channels = input.dim(1), points = PlanePixels(output.shape()), pixels = PlanePixels(input.shape());
  if (kAxes == 3 && op.interpolation_mode == GridRule::Interpolation::kBicubic)
    return InvalidArgument("attribute 'interpolation_mode': expected bilinear or nearest for volumes, got bicubic");
  const int64_t depth = kAxes == 3 ? input.dim(2) : 1, height = input.dim(kAxes), width = input.dim(kAxes + 1);
  for (int64_t n = 0; n < input.dim(0); ++n) {
    for (int64_t p = 0; p < points; ++p) {
      const double* at = grid + (n * points + p) * kAxes;
      const grid_internal::Taps xs = grid_internal::AxisTaps(at[0], width, op),
                                ys = grid_internal::AxisTaps(at[1], height, op);
      grid_internal::Taps zs;
      zs.count = 1;
      zs.index[0] = 0;
      zs.weight[0] = 1;
      if (kAxes == 3) zs = grid_internal::AxisTaps(at[kAxes - 1], depth, op);
      for (int64_t c = 0; c < channels; ++c) {
        const double* plane = input.data() + (n * channels + c) * pixels;
        double sum = 0;
        for (int z = 0; z < zs.count; ++z) {
          for (int y = 0; y < ys.count; ++y) {
            for (int x = 0; x < xs.count; ++x) {
              if (xs.index[x] < 0 || ys.index[y] < 0 || zs.index[z] < 0) continue;
              sum += plane[(zs.index[z] * height + ys.index[y]) * width + xs.index[x]] * xs.weight[x] * ys.weight[y] *
                     zs.weight[z];
            }
          }
        }
        output[(n * channels + c) * points + p] = sum;
      }
    }
  }
  return Status::Ok();
}

/// The gradients of SampleGrid with respect to the input and the points. Either may be null.
template <int kAxes>
Status SampleGridBackward(const GridRule& op, const Tensor<const double, kAxes + 2>& grad_output,
                          const Tensor<const double, kAxes + 2>& input, const double* grid, double* grad_input,
                          double* grad_grid) {
  const int64_t channels = input.dim(1), points = PlanePixels(grad_output.shape());
  const int64_t pixels = PlanePixels(input.shape());
  const int64_t depth = kAxes == 3 ? input.dim(2) : 1, height = input.dim(kAxes), width = input.dim(kAxes + 1);
  if (grad_input != nullptr) std::fill_n(grad_input, input.size(), 0.0);
  if (grad_grid != nullptr) std::fill_n(grad_grid, input.dim(0) * points * kAxes, 0.0);
  for (int64_t i = 0; i < input.dim(0) * points; ++i) {
    const double* at = grid + i * kAxes;
    const auto xs = grid_internal::AxisTaps(at[0], width, op), ys = grid_internal::AxisTaps(at[1], height, op);
    const auto zs = kAxes == 3 ? grid_internal::AxisTaps(at[kAxes - 1], depth, op)
                               : grid_internal::Taps{.count = 1, .index = {0}, .weight = {1}, .slope = {0}};
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t plane = i / points * channels + c;
      const double grad = grad_output[plane * points + i % points];
      for (int z = 0; z < zs.count; ++z) {
        for (int y = 0; y < ys.count; ++y) {
          for (int x = 0; x < xs.count; ++x) {
            if (xs.index[x] < 0 || ys.index[y] < 0 || zs.index[z] < 0) continue;
            const int64_t pixel = plane * pixels + (zs.index[z] * height + ys.index[y]) * width + xs.index[x];
            const double weight = xs.weight[x] * ys.weight[y] * zs.weight[z];
            if (grad_input != nullptr && weight != 0) grad_input[pixel] += weight * grad;
            if (grad_grid == nullptr || op.interpolation_mode == GridRule::Interpolation::kNearest) continue;
            double* const to = grad_grid + i * kAxes;
            to[0] += grad * input[pixel] * xs.slope[x] * ys.weight[y] * zs.weight[z];
            to[1] += grad * input[pixel] * xs.weight[x] * ys.slope[y] * zs.weight[z];
            if (kAxes == 3) to[kAxes - 1] += grad * input[pixel] * xs.weight[x] * ys.weight[y] * zs.slope[z];
          }
        }
      }
    }
  }
  return Status::Ok();
}

}  // namespace polyop::reference
