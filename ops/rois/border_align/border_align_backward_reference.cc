// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "ops/rois/border_align/border_align_backward.h"
#include "ops/rois/border_align/border_align_sides_reference.h"
#include "ops/sampling/reference_sampling.h"

namespace polyop {
namespace {

Status BorderAlignBackwardReference(const BorderAlignBackward& op, const Context&, Tensor<const double, 4> grad_output,
                                    Tensor<const double, 4> input, Tensor<const double, 3> boxes,
                                    Tensor<double, 4> grad_input) {
  const int64_t height = input.dim(2), width = input.dim(3), channels = input.dim(1) / 4, number = boxes.dim(1);
  std::fill_n(grad_input.data(), grad_input.size(), 0.0);
  for (int64_t i = 0; i < grad_output.size(); ++i) {
    const int64_t side = i % 4, k = i / 4 % number, c = i / 4 / number % channels, n = i / 4 / number / channels;
    const int64_t plane = (n * 4 * channels + side * channels + c) * height * width;
    double largest = -std::numeric_limits<double>::infinity(), best_y = -2, best_x = -2;  // outside
    reference::ForEachBorderSample(boxes.data() + (n * number + k) * 4, side, op.pool_size, [&](double y, double x) {
      const double value = reference::SampleClamped(input.data() + plane, height, width, y, x);
      if (!(value > largest)) return;
      largest = value;
      best_y = y;
      best_x = x;
    });
    reference::AddSampleClamped(grad_input.data() + plane, height, width, best_y, best_x, grad_output[i]);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(BorderAlignBackward, BorderAlignBackwardReference);

}  // namespace
}  // namespace polyop
