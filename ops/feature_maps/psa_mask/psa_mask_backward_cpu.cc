// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/words.h"
#include "ops/feature_maps/psa_mask/psa_mask_backward.h"
#include "ops/feature_maps/psa_mask/psa_mask_rows.h"

namespace polyop {
namespace {

// Gathers row h of the input's pixels, in the order of the forward kernel.
template <class Word>
void GatherRow(const PsaMask& op, const Word* output, int64_t height, int64_t width, int64_t h, Word* input) {
  const int64_t masks = op.mask_size[0] * op.mask_size[1];
  for (int64_t m = 0; m < masks; ++m) std::fill_n(input + (m * height + h) * width, width, Word{0});
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t r = 0; r < width; ++r) {
      const PsaMaskRun run = PsaMaskRun::Of(op, height, width, h, y, r);
      const Word* const from = output + run.output;
      Word* const to = input + run.input;
      for (int64_t w = run.begin; w < run.end; ++w) to[(w - run.begin) * run.step] = from[w];
    }
  }
}

template <class T>
Status PsaMaskBackwardCpu(const PsaMaskBackward& op, const Context& context, Tensor<const T, 4> grad_output,
                          Tensor<const T, 4> input, Tensor<T, 4> grad_input) {
  using Word = WordOf<T>;
  const int64_t height = input.dim(2), width = input.dim(3), pixels = height * width;
  const auto* const from = reinterpret_cast<const Word*>(grad_output.data());
  auto* const to = reinterpret_cast<Word*>(grad_input.data());
  context.ParallelFor(
      input.dim(0) * height, GrainFor(static_cast<double>(pixels * width)), [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item) {
          const int64_t n = item / height;
          GatherRow(op, from + n * pixels * pixels, height, width, item % height, to + n * input.dim(1) * pixels);
        }
      });
  return Status::Ok();
}

POLYOP_PLAIN_CPU_KERNELS(PsaMaskBackward, PsaMaskBackwardCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
