// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/feature_maps/corner_pool/corner_pool.h"

namespace polyop {
namespace {

double Greater(double a, double b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  return a > b ? a : b;
}

Status CornerPoolReference(const CornerPool& op, const Context&, Tensor<const double, 4> input,
                           Tensor<double, 4> output) {
  const int64_t height = input.dim(2), width = input.dim(3), planes = input.dim(0) * input.dim(1);
  const bool vertical = op.mode == CornerPool::Mode::kTop || op.mode == CornerPool::Mode::kBottom;
  const bool to_start = op.mode == CornerPool::Mode::kTop || op.mode == CornerPool::Mode::kLeft;
  for (int64_t p = 0; p < planes; ++p) {
    for (int64_t i = 0; i < height * width; ++i) {
      // Visits rows and columns from the edge at which the maximum starts; each pixel is the greater of itself and the
      // pixel before it.
      const int64_t y = to_start ? height - 1 - i / width : i / width, x = to_start ? width - 1 - i % width : i % width;
      const int64_t here = (p * height + y) * width + x, step = (vertical ? width : 1) * (to_start ? 1 : -1);
      const int64_t line = vertical ? y : x, begin = to_start ? (vertical ? height : width) - 1 : 0;
      output[here] = line == begin ? input[here] : Greater(input[here], output[here + step]);
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(CornerPool, CornerPoolReference);

}  // namespace
}  // namespace polyop
