// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/feature_maps/correlation/correlation_backward.h"

namespace polyop {
namespace {

Status CorrelationBackwardReference(const CorrelationBackward& op, const Context&, Tensor<const double, 5> grad_output,
                                    Tensor<const double, 4> input1, Tensor<const double, 4> input2,
                                    std::optional<Tensor<double, 4>> grad_input1,
                                    std::optional<Tensor<double, 4>> grad_input2) {
  const int64_t channels = input1.dim(1), height = input1.dim(2), width = input1.dim(3);
  const int64_t rows = grad_output.dim(3), columns = grad_output.dim(4), patch = grad_output.dim(1);
  if (grad_input1) std::fill_n(grad_input1->data(), grad_input1->size(), 0.0);
  if (grad_input2) std::fill_n(grad_input2->data(), grad_input2->size(), 0.0);
  const auto inside = [&](int64_t y, int64_t x) { return y >= 0 && y < height && x >= 0 && x < width; };
  for (int64_t element = 0; element < grad_output.size(); ++element) {
    const int64_t x = element % columns, y = element / columns % rows, displaced = element / columns / rows;
    const int64_t n = displaced / patch / patch;
    const int64_t down = (displaced / patch % patch - op.max_displacement) * op.dilation_patch[0];
    const int64_t right = (displaced % patch - op.max_displacement) * op.dilation_patch[1];
    for (int64_t point = 0; point < op.kernel_size[0] * op.kernel_size[1]; ++point) {
      const int64_t row = y * op.stride[0] + point / op.kernel_size[1] * op.dilation[0] - op.padding[0];
      const int64_t column = x * op.stride[1] + point % op.kernel_size[1] * op.dilation[1] - op.padding[1];
      if (!inside(row, column) || !inside(row + down, column + right)) continue;
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t first = ((n * channels + c) * height + row) * width + column,
                      second = first + down * width + right;
        if (grad_input1) (*grad_input1)[first] += grad_output[element] * input2[second];
        if (grad_input2) (*grad_input2)[second] += grad_output[element] * input1[first];
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(CorrelationBackward, CorrelationBackwardReference);

}  // namespace
}  // namespace polyop
