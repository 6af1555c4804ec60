// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "ops/rois/border_align/border_align.h"
#include "ops/rois/border_align/border_align_sides_reference.h"
#include "ops/sampling/reference_sampling.h"

namespace polyop {
namespace {

Status BorderAlignReference(const BorderAlign& op, const Context&, Tensor<const double, 4> input,
                            Tensor<const double, 3> boxes, Tensor<double, 4> output) {
  const int64_t height = input.dim(2), width = input.dim(3), channels = output.dim(1), number = boxes.dim(1);
  for (int64_t i = 0; i < output.size(); ++i) {
    const int64_t side = i % 4, k = i / 4 % number, c = i / 4 / number % channels, n = i / 4 / number / channels;
    const double* box = boxes.data() + (n * number + k) * 4;
    const double* plane = input.data() + (n * 4 * channels + side * channels + c) * height * width;
    double largest = -std::numeric_limits<double>::infinity();
    reference::ForEachBorderSample(box, side, op.pool_size, [&](double y, double x) {
      const double value = reference::SampleClamped(plane, height, width, y, x);
      if (value > largest) largest = value;
    });
    output[i] = std::isinf(largest) && largest < 0 ? 0 : largest;
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(BorderAlign, BorderAlignReference);

}  // namespace
}  // namespace polyop
