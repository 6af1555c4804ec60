#include <algorithm>

#include "core/words.h"
#include "ops/psa_mask/psa_mask.h"

namespace polyop {
namespace {

// A task takes row h of the input's pixels. Between it and row y lies one row of the masks, [columns of masks][W],
// which the cache holds while all rows of the output that it fills are written, each in a piece.
template <class Word>
void SpreadRow(const PsaMask& op, const Word* input, int64_t height, int64_t width, int64_t h, Word* output) {
  const bool collect = op.psa_type == PsaMask::Type::kCollect;
  const int64_t a = op.mask_size[0] / 2, b = op.mask_size[1] / 2, pixels = height * width;
  for (int64_t y = 0; y < height; ++y) {
    const int64_t i = y - h + a;
    for (int64_t r = 0; r < width; ++r) {
      // collect: channel (y, r) of pixels (h, .); distribute: channel (h, r) of pixels (y, .).
      Word* const to =
          collect ? output + (y * width + r) * pixels + h * width : output + (h * width + r) * pixels + y * width;
      if (i < 0 || i >= op.mask_size[0]) {
        std::fill_n(to, width, Word{0});
        continue;
      }
      const int64_t begin = std::max<int64_t>(r - b, 0), end = std::min(r + b + 1, width);
      const Word* const row = input + i * op.mask_size[1] * pixels + h * width;  // [columns of masks][pixels]
      const Word* from = row + (collect ? (r - begin + b) * pixels + begin : (begin - r + b) * pixels + r);
      const int64_t step = collect ? 1 - pixels : pixels;
      std::fill_n(to, begin, Word{0});
      for (int64_t w = begin; w < end; ++w) to[w] = from[(w - begin) * step];
      std::fill_n(to + end, width - end, Word{0});
    }
  }
}

template <class T>
Status PsaMaskCpu(const PsaMask& op, const Context& context, Tensor<const T, 4> input, Tensor<T, 4> output) {
  using Word = WordOf<T>;
  const int64_t height = input.dim(2), width = input.dim(3), pixels = height * width;
  const auto* const from = reinterpret_cast<const Word*>(input.data());
  auto* const to = reinterpret_cast<Word*>(output.data());
  context.ParallelFor(
      input.dim(0) * height, GrainFor(static_cast<double>(pixels * width)), [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item) {
          const int64_t n = item / height;
          SpreadRow(op, from + n * input.dim(1) * pixels, height, width, item % height, to + n * pixels * pixels);
        }
      });
  return Status::Ok();
}

POLYOP_KERNEL(PsaMask, Device::kCpu, PsaMaskF32, PsaMaskCpu<float>);
POLYOP_KERNEL(PsaMask, Device::kCpu, PsaMaskF16, PsaMaskCpu<Half>);
POLYOP_KERNEL(PsaMask, Device::kCpu, PsaMaskBF16, PsaMaskCpu<BFloat16>);

}  // namespace
}  // namespace polyop
