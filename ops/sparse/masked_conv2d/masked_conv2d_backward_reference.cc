// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/sparse/masked_conv2d/masked_conv2d_backward.h"

namespace polyop {
namespace {

template <class M>
Status MaskedConvBackwardReference(const MaskedConv2dBackward& op, const Context&, Tensor<const double, 4> grad_output,
                                   Tensor<const double, 4> features, Tensor<const M, 3> mask,
                                   Tensor<const double, 4> weight, std::optional<Tensor<const double, 1>>,
                                   std::optional<Tensor<double, 4>> grad_features,
                                   std::optional<Tensor<double, 4>> grad_weight,
                                   std::optional<Tensor<double, 1>> grad_bias) {
  const int64_t channels = features.dim(1), height = features.dim(2), width = features.dim(3);
  const int64_t rows = grad_output.dim(2), columns = grad_output.dim(3);
  if (grad_features) std::fill_n(grad_features->data(), grad_features->size(), 0.0);
  if (grad_weight) std::fill_n(grad_weight->data(), grad_weight->size(), 0.0);
  if (grad_bias) std::fill_n(grad_bias->data(), grad_bias->size(), 0.0);
  for (int64_t i = 0; i < grad_output.size(); ++i) {
    const int64_t x = i % columns, y = i / columns % rows, o = i / columns / rows;
    if (!(mask[y * columns + x] > 0)) continue;
    if (grad_bias) (*grad_bias)[o] += grad_output[i];
    for (int64_t ky = 0; ky < weight.dim(2); ++ky) {
      for (int64_t kx = 0; kx < weight.dim(3); ++kx) {
        const int64_t at_y = y + ky - op.padding[0], at_x = x + kx - op.padding[1];
        if (at_y < 0 || at_y >= height || at_x < 0 || at_x >= width) continue;
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t pixel = (c * height + at_y) * width + at_x;
          const int64_t w = ((o * channels + c) * weight.dim(2) + ky) * weight.dim(3) + kx;
          if (grad_features) (*grad_features)[pixel] += grad_output[i] * weight[w];
          if (grad_weight) (*grad_weight)[w] += grad_output[i] * features[pixel];
        }
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(MaskedConv2dBackward, MaskedConvBackwardReference, double, bool);

}  // namespace
}  // namespace polyop
