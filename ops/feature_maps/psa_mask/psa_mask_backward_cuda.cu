// SPDX-License-Identifier: Apache-2.0
#include "core/words.h"
#include "kernels/cuda/cuda.h"
#include "ops/feature_maps/psa_mask/psa_mask_backward.h"

namespace polyop {
namespace {

// Each element of a mask reads the one gradient that it has.
template <class T>
Status PsaMaskBackwardCuda(const PsaMaskBackward& op, const CudaContext& cuda, Tensor<const T, 4> grad_output,
                           Tensor<const T, 4> input, Tensor<T, 4> grad_input) {
  using Word = WordOf<T>;
  const int64_t above = op.mask_size[0] / 2, before = op.mask_size[1] / 2, height = input.dim(2);
  const bool collect = op.psa_type == PsaMask::Type::kCollect;
  const Divider by_channels(input.dim(1)), by_columns(op.mask_size[1]), pixels(height * input.dim(3));
  const Divider width(input.dim(3));
  const auto* const from = reinterpret_cast<const Word*>(grad_output.data());
  auto* const to = reinterpret_cast<Word*>(grad_input.data());
  return ForEach(cuda, grad_input.size(), [=] POLYOP_DEVICE(int64_t index) {
    int64_t pixel, channel, w, j;
    const int64_t n = by_channels.Split(pixels.Split(index, &pixel), &channel);
    const int64_t h = width.Split(pixel, &w), i = by_columns.Split(channel, &j);
    const int64_t y = h + i - above, x = w + j - before;
    const bool inside = y >= 0 && y < height && x >= 0 && x < width.divisor();
    const int64_t other = y * width.divisor() + x;
    const int64_t row = n * pixels.divisor() + (collect ? other : pixel);
    to[index] = inside ? from[row * pixels.divisor() + (collect ? pixel : other)] : Word{0};
  });
}

POLYOP_CUDA_KERNELS(PsaMaskBackward, PsaMaskBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
