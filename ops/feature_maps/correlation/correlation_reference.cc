// SPDX-License-Identifier: Apache-2.0
#include "ops/feature_maps/correlation/correlation.h"

namespace polyop {
namespace {

Status CorrelationReference(const Correlation& op, const Context&, Tensor<const double, 4> input1,
                            Tensor<const double, 4> input2, Tensor<double, 5> output) {
  const int64_t channels = input1.dim(1), height = input1.dim(2), width = input1.dim(3);
  const int64_t patch = 2 * op.max_displacement + 1;
  int64_t element = 0;
  // Returns the product of input1 at (row, column) and input2 at (other_row, other_column), 0 outside.
  const auto product = [&](int64_t n, int64_t row, int64_t column, int64_t other_row, int64_t other_column) {
    const auto inside = [&](int64_t y, int64_t x) { return y >= 0 && y < height && x >= 0 && x < width; };
    double sum = 0;
    if (!inside(row, column) || !inside(other_row, other_column)) return sum;
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t plane = (n * channels + c) * height * width;
      sum += input1[plane + row * width + column] * input2[plane + other_row * width + other_column];
    }
    return sum;
  };
  for (int64_t n = 0; n < output.dim(0); ++n) {
    for (int64_t displaced = 0; displaced < patch * patch; ++displaced) {
      const int64_t down = (displaced / patch - op.max_displacement) * op.dilation_patch[0];
      const int64_t right = (displaced % patch - op.max_displacement) * op.dilation_patch[1];
      for (int64_t y = 0; y < output.dim(3); ++y) {
        for (int64_t x = 0; x < output.dim(4); ++x) {
          double sum = 0;
          for (int64_t point = 0; point < op.kernel_size[0] * op.kernel_size[1]; ++point) {
            const int64_t row = y * op.stride[0] + point / op.kernel_size[1] * op.dilation[0] - op.padding[0];
            const int64_t column = x * op.stride[1] + point % op.kernel_size[1] * op.dilation[1] - op.padding[1];
            sum += product(n, row, column, row + down, column + right);
          }
          output[element++] = sum;
        }
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(Correlation, CorrelationReference);

}  // namespace
}  // namespace polyop
