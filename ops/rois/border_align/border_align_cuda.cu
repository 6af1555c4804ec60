// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/rois/border_align/border_align.h"
#include "ops/rois/border_align/border_maxima_cuda.h"

namespace polyop {
namespace {

// Each thread finds the largest samples of one side for a pack of channels.
template <int kWide, class T>
Status WriteMaxima(const CudaContext& cuda, const BorderImages<T>& images, const Tensor<const T, 3>& boxes,
                   int64_t pool_size, T* output) {
  using Channels = Pack<T, kWide>;
  const int64_t height = images.height, width = images.width, channels = images.channels / kBorderSides;
  const int64_t packs = channels / kWide, number = boxes.dim(1);
  const Divider by_packs(packs), lines(number * kBorderSides);
  const auto* const copies = reinterpret_cast<const Channels*>(images.copies);
  return images.ForEach(cuda, [&](int64_t first, int64_t some) {
    const T* const box_data = boxes.data() + first * number * 4;
    T* const to = output + first * channels * lines.divisor();
    return ForEach(cuda, some * number * kBorderSides * packs, [=] POLYOP_DEVICE(int64_t i) {
      int64_t pack, line;
      const int64_t n = lines.Split(by_packs.Split(i, &pack), &line);
      const auto side = static_cast<int>(line % kBorderSides);
      const T* const box = box_data + (n * number + line / kBorderSides) * 4;
      const int64_t step = kBorderSides * packs;
      const Channels* const pixels = copies + n * height * width * step + side * packs + pack;
      const auto largest = BorderMaxima<kWide>::Find(pixels, step, height, width, box, side, pool_size);
      for (int c = 0; c < kWide; ++c) {
        const float value = largest.at[c] < 0 ? 0 : largest.value[c];
        to[(n * channels + pack * kWide + c) * lines.divisor() + line] = FromFloat<T>(value);
      }
    });
  });
}

template <class T>
Status BorderAlignCuda(const BorderAlign& op, const CudaContext& cuda, Tensor<const T, 4> input,
                       Tensor<const T, 3> boxes, Tensor<T, 4> output) {
  const BorderImages<T> images = BorderImages<T>::Allocate(cuda, input);
  const auto write = output.dim(1) % 4 == 0 ? WriteMaxima<4, T> : WriteMaxima<1, T>;
  return write(cuda, images, boxes, op.pool_size, output.data());
}

POLYOP_CUDA_KERNELS(BorderAlign, BorderAlignCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
