// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/rois/border_align/border_align.h"
#include "ops/rois/border_align/border_maxima_cuda.h"

namespace polyop {
namespace {

template <class T>
Status BorderAlignCuda(const BorderAlign& op, const CudaContext& cuda, Tensor<const T, 4> input,
                       Tensor<const T, 3> boxes, Tensor<T, 4> output) {
  const int64_t height = input.dim(2), width = input.dim(3), channels = output.dim(1), number = boxes.dim(1);
  const int64_t pool_size = op.pool_size;
  const Divider lines(number * kBorderSides), parts(BlocksFor(channels, kBorderChannels));
  const T *from = input.data(), *box_data = boxes.data();
  T* const to = output.data();
  return ForEach(cuda, input.dim(0) * parts.divisor() * number * kBorderSides, [=] POLYOP_DEVICE(int64_t i) {
    int64_t line, part;
    const int64_t n = parts.Split(lines.Split(i, &line), &part);
    const auto side = static_cast<int>(line % kBorderSides);
    const T* const box = box_data + (n * number + line / kBorderSides) * 4;
    const int64_t first = part * kBorderChannels, rest = channels - first;
    const auto held = static_cast<int>(rest < kBorderChannels ? rest : kBorderChannels);
    const T* const planes = from + ((n * kBorderSides + side) * channels + first) * height * width;
    const BorderMaxima largest = BorderMaxima::Find(planes, height, width, held, box, side, pool_size);
    for (int c = 0; c < kBorderChannels; ++c) {
      if (c >= held) continue;
      const float value = largest.at[c] < 0 ? 0 : largest.value[c];
      to[(n * channels + first + c) * lines.divisor() + line] = FromFloat<T>(value);
    }
  });
}

POLYOP_CUDA_KERNELS(BorderAlign, BorderAlignCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
