// Samples at a grid's points in double precision, one by one: for reference kernels only.
#pragma once

#include <cmath>

#include "core/status.h"
#include "core/tensor.h"
#include "families/sampling/grid_rule.h"

namespace polyop::reference {
namespace grid_internal {

// Reflection by walking: mirrored again and again until inside, as the definition says.
inline double Mirror(double x, double low, double high) {
  if (low == high) return 0;
  const double period = 2 * (high - low);
  x = std::abs(std::remainder(x - low, period));
  return low + x;
}

// The coordinate after the padding rule. `outside` is set where padding zeros sees nothing.
inline double Place(double x, int64_t extent, const GridRule& op) {
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
  int64_t index[4];  // -1: outside, counts as 0
  double weight[4];
};

inline Taps AxisTaps(double normalized, int64_t extent, const GridRule& op) {
  Taps taps;
  if (extent == 0) return taps;
  const double size = static_cast<double>(extent);
  double x = op.align_corners ? (normalized + 1) / 2 * (size - 1) : ((normalized + 1) * size - 1) / 2;
  const auto add = [&](double index, double weight) {
    taps.index[taps.count] = index >= 0 && index < size ? static_cast<int64_t>(index) : -1;
    taps.weight[taps.count++] = weight;
  };
  if (op.padding_mode == GridRule::Padding::kZeros && !std::isfinite(x)) return taps;
  if (op.interpolation_mode == GridRule::Interpolation::kBicubic) {
    if (std::isnan(x) || (std::isinf(x) && op.padding_mode == GridRule::Padding::kReflection)) x = 0;
    if (std::isinf(x)) x = x > 0 ? size + 5 : -5;
    for (int i = -1; i <= 2; ++i) add(Place(std::floor(x) + i, extent, op), Cubic(x - std::floor(x) - i));
    return taps;
  }
  x = Place(x, extent, op);
  if (op.interpolation_mode == GridRule::Interpolation::kNearest) {
    add(std::nearbyint(x), 1);
  } else {
    add(std::floor(x), std::floor(x) + 1 - x);
    add(std::floor(x) + 1, x - std::floor(x));
  }
  return taps;
}

}  // namespace grid_internal

/// output[N, C, ...] = input[N, C, ...] at the points [N, ...], whose coordinates x, y (and z) are -1 to 1 over a
/// picture.
template <int kAxes>
Status SampleGrid(const GridRule& op, const Tensor<const double, kAxes + 2>& input, const double* grid,
                  const Tensor<double, kAxes + 2>& output) {
  const int64_t channels = input.dim(1), points = PlanePixels(output.shape()), pixels = PlanePixels(input.shape());
  if (kAxes == 3 && op.interpolation_mode == GridRule::Interpolation::kBicubic)
    return InvalidArgument("bicubic is for pictures");
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
}  // namespace polyop::reference
