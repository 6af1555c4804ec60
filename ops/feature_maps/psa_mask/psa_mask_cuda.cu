// SPDX-License-Identifier: Apache-2.0
#include "core/words.h"
#include "kernels/cuda/cuda.h"
#include "ops/feature_maps/psa_mask/psa_mask.h"

namespace polyop {
namespace {

template <class T>
Status PsaMaskCuda(const PsaMask& op, const CudaContext& cuda, Tensor<const T, 4> input, Tensor<T, 4> output) {
  using Word = WordOf<T>;
  const int64_t rows = op.mask_size[0], columns = op.mask_size[1], channels = input.dim(1);
  const bool collect = op.psa_type == PsaMask::Type::kCollect;
  const Divider pixels(input.dim(2) * input.dim(3)), width(input.dim(3));
  const auto* const from = reinterpret_cast<const Word*>(input.data());
  auto* const to = reinterpret_cast<Word*>(output.data());
  return ForEach(cuda, output.size(), [=] POLYOP_DEVICE(int64_t index) {
    int64_t pixel, channel, h, w, y, x;
    const int64_t n = pixels.Split(pixels.Split(index, &pixel), &channel);
    const int64_t of = collect ? pixel : channel, about = collect ? channel : pixel;
    h = width.Split(of, &w);
    y = width.Split(about, &x);
    const int64_t i = y - h + rows / 2, j = x - w + columns / 2;
    const bool inside = i >= 0 && i < rows && j >= 0 && j < columns;
    to[index] = inside ? from[(n * channels + i * columns + j) * pixels.divisor() + of] : Word{0};
  });
}

POLYOP_CUDA_KERNELS(PsaMask, PsaMaskCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
