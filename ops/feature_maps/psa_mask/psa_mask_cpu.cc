// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/words.h"
#include "ops/feature_maps/psa_mask/psa_mask_rows.h"

namespace polyop {
namespace {

// Spreads row h of the input's pixels. Its relation to row y of the image is a single row of the masks,
// [columns of masks][W], which stays in the cache while all rows of the output that depend on it are written.
template <class Word>
void SpreadRow(const PsaMask& op, const Word* input, int64_t height, int64_t width, int64_t h, Word* output) {
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t r = 0; r < width; ++r) {
      const PsaMaskRun run = PsaMaskRun::Of(op, height, width, h, y, r);
      const Word* const from = input + run.input;
      Word* const to = output + run.output;
      std::fill_n(to, run.begin, Word{0});
      for (int64_t w = run.begin; w < run.end; ++w) to[w] = from[(w - run.begin) * run.step];
      std::fill_n(to + run.end, width - run.end, Word{0});
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

POLYOP_PLAIN_CPU_KERNELS(PsaMask, PsaMaskCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
