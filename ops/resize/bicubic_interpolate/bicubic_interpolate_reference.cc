// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "ops/resize/bicubic_interpolate/bicubic_interpolate.h"

namespace polyop {
namespace {

double Kernel(double x) {
  constexpr double a = -0.75;
  x = std::abs(x);
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

// The matrix that maps a column of `from` pixels to a column of `to` pixels; each row holds its nonzero elements.
using Matrix = std::vector<std::map<int64_t, double>>;

Matrix ResizeMatrix(int64_t from, int64_t to, double scale, bool align_corners) {
  Matrix matrix(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    double at = (static_cast<double>(i) + 0.5) / scale - 0.5;
    if (align_corners) at = to > 1 ? static_cast<double>(i * (from - 1)) / static_cast<double>(to - 1) : 0;
    std::map<int64_t, double>& row = matrix[static_cast<size_t>(i)];
    for (int tap = -1; tap <= 2; ++tap) {
      const double pixel = std::floor(at) + tap;
      const auto clamped = static_cast<int64_t>(std::clamp<double>(pixel, 0, static_cast<double>(from - 1)));
      row[clamped] += Kernel(at - pixel);
    }
    std::erase_if(row, [](const auto& element) { return element.second == 0; });
  }
  return matrix;
}

// output = rows * input * columns^T, plane by plane.
Status BicubicInterpolateReference(const BicubicInterpolate& op, const Context&, Tensor<const double, 4> input,
                                   Tensor<double, 4> output) {
  const int64_t height = input.dim(2), width = input.dim(3), rows = output.dim(2), columns = output.dim(3);
  const Matrix vertical = ResizeMatrix(height, rows, op.scale_factor[0], op.align_corners);
  const Matrix horizontal = ResizeMatrix(width, columns, op.scale_factor[1], op.align_corners);
  for (int64_t plane = 0; plane < input.dim(0) * input.dim(1); ++plane) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        double sum = 0;
        for (const auto& [y, down] : vertical[static_cast<size_t>(r)]) {
          for (const auto& [x, across] : horizontal[static_cast<size_t>(c)]) {
            sum += down * across * input[(plane * height + y) * width + x];
          }
        }
        output[(plane * rows + r) * columns + c] = sum;
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(BicubicInterpolate, BicubicInterpolateReference);

}  // namespace
}  // namespace polyop
