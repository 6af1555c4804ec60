// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/resize/dynamic_resize/dynamic_resize.h"

namespace polyop {
namespace {

// Keys' cubic kernel, written as its two-branch definition.
double CubicWeight(double x) {
  constexpr double a = -0.75;
  x = std::abs(x);
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  if (x < 2) return a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a;
  return 0;
}

Status DynamicResizeReference(const DynamicResize&, const Context&, Tensor<const double, 4> input,
                              Tensor<const float, 1> scales, Tensor<double, 4> output) {
  const int64_t height = input.dim(2), width = input.dim(3), rows = output.dim(2), columns = output.dim(3);
  for (int64_t plane = 0; plane < input.dim(0) * input.dim(1); ++plane) {
    const double* from = input.data() + plane * height * width;
    for (int64_t oy = 0; oy < rows; ++oy) {
      const double y = (static_cast<double>(oy) + 0.5) / scales[2] - 0.5;
      for (int64_t ox = 0; ox < columns; ++ox) {
        const double x = (static_cast<double>(ox) + 0.5) / scales[3] - 0.5;
        double sum = 0;
        const auto top = static_cast<int64_t>(std::floor(y)), left = static_cast<int64_t>(std::floor(x));
        for (int64_t iy = top - 1; iy <= top + 2; ++iy) {
          for (int64_t ix = left - 1; ix <= left + 2; ++ix) {
            const int64_t row = std::clamp<int64_t>(iy, 0, height - 1), column = std::clamp<int64_t>(ix, 0, width - 1);
            sum += from[row * width + column] * CubicWeight(y - static_cast<double>(iy)) *
                   CubicWeight(x - static_cast<double>(ix));
          }
        }
        output[(plane * rows + oy) * columns + ox] = sum;
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(DynamicResize, DynamicResizeReference);

}  // namespace
}  // namespace polyop
