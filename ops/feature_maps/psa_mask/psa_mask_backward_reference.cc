// SPDX-License-Identifier: Apache-2.0
#include "ops/feature_maps/psa_mask/psa_mask_backward.h"

namespace polyop {
namespace {

Status PsaMaskBackwardReference(const PsaMaskBackward& op, const Context&, Tensor<const double, 4> grad_output,
                                Tensor<const double, 4> input, Tensor<double, 4> grad_input) {
  const int64_t height = input.dim(2), width = input.dim(3), pixels = height * width;
  for (int64_t at = 0; at < input.size(); ++at) {
    const int64_t w = at % width, h = at / width % height, channel = at / pixels % input.dim(1);
    const int64_t n = at / pixels / input.dim(1);
    const int64_t y = h + channel / op.mask_size[1] - (op.mask_size[0] - 1) / 2;
    const int64_t x = w + channel % op.mask_size[1] - (op.mask_size[1] - 1) / 2;
    grad_input[at] = 0;
    if (y < 0 || y >= height || x < 0 || x >= width) continue;
    const int64_t pixel = h * width + w, other = y * width + x;
    const bool collect = op.psa_type == PsaMask::Type::kCollect;
    grad_input[at] = grad_output[(n * pixels + (collect ? other : pixel)) * pixels + (collect ? pixel : other)];
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(PsaMaskBackward, PsaMaskBackwardReference);

}  // namespace
}  // namespace polyop
