// SPDX-License-Identifier: Apache-2.0
#include "ops/feature_maps/carafe/carafe.h"

namespace polyop {
namespace {

Status CarafeReference(const Carafe& op, const Context&, Tensor<const double, 4> features,
                       Tensor<const double, 4> masks, Tensor<double, 4> output) {
  const int64_t channels = features.dim(1), height = features.dim(2), width = features.dim(3), k = op.kernel_size;
  const int64_t rows = output.dim(2), columns = output.dim(3), scale = static_cast<int64_t>(op.scale_factor);
  for (int64_t i = 0; i < output.size(); ++i) {
    const int64_t x = i % columns, y = i / columns % rows, c = i / columns / rows % channels;
    const int64_t n = i / columns / rows / channels, group = c / (channels / op.group_size);
    double sum = 0;
    for (int64_t iy = 0; iy < k; ++iy) {
      for (int64_t ix = 0; ix < k; ++ix) {
        const int64_t at_y = y / scale + iy - k / 2, at_x = x / scale + ix - k / 2;
        if (at_y < 0 || at_y >= height || at_x < 0 || at_x >= width) continue;
        const int64_t position = (group * k + iy) * k + ix;
        sum += features[((n * channels + c) * height + at_y) * width + at_x] *
               masks[((n * masks.dim(1) + position) * rows + y) * columns + x];
      }
    }
    output[i] = sum;
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(Carafe, CarafeReference);

}  // namespace
}  // namespace polyop
