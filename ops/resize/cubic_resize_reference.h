// SPDX-License-Identifier: Apache-2.0
// Cubic resizing in double precision, pixel by pixel: for reference kernels only.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/status.h"
#include "core/tensor.h"
#include "ops/resize/cubic_resize_rule.h"

namespace polyop::reference {
namespace cubic_internal {

// Keys' cubic kernel, written as its two-branch definition.
inline double Kernel(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  if (x < 2) return a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a;
  return 0;
}

// The coordinate transformations as ONNX's documentation states them.
inline double Coordinate(CubicResizeRule::Transformation mode, double resized, double length_resized,
                         double length_original) {
  using enum CubicResizeRule::Transformation;
  const double scale = length_resized / length_original;
  switch (mode) {
    case kHalfPixel: return (resized + 0.5) / scale - 0.5;
    case kPytorchHalfPixel: return length_resized > 1 ? (resized + 0.5) / scale - 0.5 : 0;
    case kAlignCorners: return length_resized > 1 ? resized * (length_original - 1) / (length_resized - 1) : 0;
    case kAsymmetric: return resized / scale;
  }
  return 0;
}

struct Tap {
  int64_t pixel;
  double weight;
};

using Taps = std::array<Tap, 4>;

// Returns the input pixels and weights of a resized pixel.
inline Taps TapsOf(const CubicResizeRule& op, int64_t resized, int64_t length_resized, int64_t length) {
  const double at = Coordinate(op.coordinate_transformation_mode, static_cast<double>(resized),
                               static_cast<double>(length_resized), static_cast<double>(length));
  Taps taps;
  double sum = 0;
  const auto first = static_cast<int64_t>(std::floor(at)) - 1;
  for (int64_t k = 0; k < 4; ++k) {
    const int64_t pixel = first + k, inside = std::clamp<int64_t>(pixel, 0, length - 1);
    const bool used = pixel == inside || !op.exclude_outside;
    taps[static_cast<size_t>(k)] = {inside, used ? Kernel(at - static_cast<double>(pixel), op.cubic_coeff_a) : 0.0};
    sum += taps[static_cast<size_t>(k)].weight;
  }
  for (Tap& tap : taps) tap.weight /= op.exclude_outside ? sum : 1;
  return taps;
}

inline std::vector<Taps> AllTaps(const CubicResizeRule& op, int64_t length_resized, int64_t length) {
  std::vector<Taps> taps;
  for (int64_t resized = 0; resized < length_resized; ++resized)
    taps.push_back(TapsOf(op, resized, length_resized, length));
  return taps;
}

}  // namespace cubic_internal

/// Resizes input [N, C, H, W] to the extents of the output.
inline Status ResizeCubic(const CubicResizeRule& op, const Tensor<const double, 4>& input,
                          const Tensor<double, 4>& output) {
  using namespace cubic_internal;
  const int64_t height = input.dim(2), width = input.dim(3), rows = output.dim(2), columns = output.dim(3);
  const std::vector<Taps> downs = AllTaps(op, rows, height), acrosses = AllTaps(op, columns, width);
  for (int64_t plane = 0; plane < input.dim(0) * input.dim(1); ++plane) {
    for (int64_t oy = 0; oy < rows; ++oy) {
      for (int64_t ox = 0; ox < columns; ++ox) {
        double sum = 0;
        for (const Tap& down : downs[static_cast<size_t>(oy)]) {
          for (const Tap& across : acrosses[static_cast<size_t>(ox)]) {
            sum += input[(plane * height + down.pixel) * width + across.pixel] * down.weight * across.weight;
          }
        }
        output[(plane * rows + oy) * columns + ox] = sum;
      }
    }
  }
  return Status::Ok();
}

}  // namespace polyop::reference
