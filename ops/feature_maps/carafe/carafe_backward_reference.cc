// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/feature_maps/carafe/carafe_backward.h"

namespace polyop {
namespace {

Status CarafeBackwardReference(const CarafeBackward& op, const Context&, Tensor<const double, 4> grad_output,
                               Tensor<const double, 4> features, Tensor<const double, 4> masks,
                               std::optional<Tensor<double, 4>> grad_features,
                               std::optional<Tensor<double, 4>> grad_masks) {
  const int64_t channels = features.dim(1), height = features.dim(2), width = features.dim(3), k = op.kernel_size;
  const int64_t rows = grad_output.dim(2), columns = grad_output.dim(3), scale = static_cast<int64_t>(op.scale_factor);
  if (grad_features) std::fill_n(grad_features->data(), grad_features->size(), 0.0);
  if (grad_masks) std::fill_n(grad_masks->data(), grad_masks->size(), 0.0);
  for (int64_t i = 0; i < grad_output.size(); ++i) {
    const int64_t x = i % columns, y = i / columns % rows, c = i / columns / rows % channels;
    const int64_t n = i / columns / rows / channels, group = c / (channels / op.group_size);
    for (int64_t iy = 0; iy < k; ++iy) {
      for (int64_t ix = 0; ix < k; ++ix) {
        const int64_t at_y = y / scale + iy - k / 2, at_x = x / scale + ix - k / 2;
        if (at_y < 0 || at_y >= height || at_x < 0 || at_x >= width) continue;
        const int64_t position = (group * k + iy) * k + ix, pixel = ((n * channels + c) * height + at_y) * width + at_x;
        const int64_t mask = ((n * masks.dim(1) + position) * rows + y) * columns + x;
        if (grad_features) (*grad_features)[pixel] += grad_output[i] * masks[mask];
        if (grad_masks) (*grad_masks)[mask] += grad_output[i] * features[pixel];
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(CarafeBackward, CarafeBackwardReference);

}  // namespace
}  // namespace polyop
