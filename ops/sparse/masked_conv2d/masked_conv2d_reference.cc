// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/masked_conv2d/masked_conv2d.h"

namespace polyop {
namespace {

template <class M>
Status MaskedConvReference(const MaskedConv2d& op, const Context&, Tensor<const double, 4> features,
                           Tensor<const M, 3> mask, Tensor<const double, 4> weight,
                           std::optional<Tensor<const double, 1>> bias, Tensor<double, 4> output) {
  const int64_t channels = features.dim(1), height = features.dim(2), width = features.dim(3);
  const int64_t rows = output.dim(2), columns = output.dim(3);
  for (int64_t i = 0; i < output.size(); ++i) {
    const int64_t x = i % columns, y = i / columns % rows, o = i / columns / rows;
    output[i] = 0;
    if (!(mask[y * columns + x] > 0)) continue;
    double sum = bias ? (*bias)[o] : 0;
    for (int64_t ky = 0; ky < weight.dim(2); ++ky) {
      for (int64_t kx = 0; kx < weight.dim(3); ++kx) {
        const int64_t at_y = y + ky - op.padding[0], at_x = x + kx - op.padding[1];
        if (at_y < 0 || at_y >= height || at_x < 0 || at_x >= width) continue;
        for (int64_t c = 0; c < channels; ++c) {
          sum += features[(c * height + at_y) * width + at_x] *
                 weight[((o * channels + c) * weight.dim(2) + ky) * weight.dim(3) + kx];
        }
      }
    }
    output[i] = sum;
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(MaskedConv2d, MaskedConvReference, double, bool);

}  // namespace
}  // namespace polyop
