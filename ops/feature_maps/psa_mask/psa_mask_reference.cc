// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/feature_maps/psa_mask/psa_mask.h"

namespace polyop {
namespace {

Status PsaMaskReference(const PsaMask& op, const Context&, Tensor<const double, 4> input, Tensor<double, 4> output) {
  const int64_t height = input.dim(2), width = input.dim(3);
  std::fill_n(output.data(), output.size(), 0.0);
  for (int64_t at = 0; at < input.size(); ++at) {
    const int64_t w = at % width, h = at / width % height, channel = at / width / height % input.dim(1);
    const int64_t n = at / width / height / input.dim(1);
    const int64_t y = h + channel / op.mask_size[1] - (op.mask_size[0] - 1) / 2;
    const int64_t x = w + channel % op.mask_size[1] - (op.mask_size[1] - 1) / 2;
    if (y < 0 || y >= height || x < 0 || x >= width) continue;
    const int64_t pixel = h * width + w, other = y * width + x, pixels = height * width;
    const bool collect = op.psa_type == PsaMask::Type::kCollect;
    output[(n * pixels + (collect ? other : pixel)) * pixels + (collect ? pixel : other)] = input[at];
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(PsaMask, PsaMaskReference);

}  // namespace
}  // namespace polyop
