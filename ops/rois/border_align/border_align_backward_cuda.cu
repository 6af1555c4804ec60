// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/atomic_add.h"
#include "ops/rois/border_align/border_align_backward.h"
#include "ops/rois/border_align/border_maxima_cuda.h"

namespace polyop {
namespace {

// Each thread finds the largest samples of one side for a pack of channels and adds their gradients to their pixels:
// channels have different samples, so that additions share nothing, whatever the layout. In addition to what is read,
// 2,000 boxes of 4 x 64 channels have 2 million additions, 0.013 ms of an H200 at 160 for each nanosecond.
template <int kWide, class T>
Status AddToMaxima(const CudaContext& cuda, const BorderImages<T>& images, const Tensor<const T, 3>& boxes,
                   int64_t pool_size, const T* grad_output, const ChannelSums& sums) {
  using Channels = Pack<T, kWide>;
  const int64_t height = images.height, width = images.width, channels = images.channels / kBorderSides;
  const int64_t packs = channels / kWide, number = boxes.dim(1);
  const Divider by_packs(packs), lines(number * kBorderSides);
  const auto* const copies = reinterpret_cast<const Channels*>(images.copies);
  return images.ForEach(cuda, [&](int64_t first, int64_t some) {
    const T* const box_data = boxes.data() + first * number * 4;
    const T* const grads = grad_output + first * channels * lines.divisor();
    return ForEach(cuda, some * number * kBorderSides * packs, [=] POLYOP_DEVICE(int64_t i) {
      int64_t pack, line;
      const int64_t n = lines.Split(by_packs.Split(i, &pack), &line);
      const auto side = static_cast<int>(line % kBorderSides);
      const T* const box = box_data + (n * number + line / kBorderSides) * 4;
      const int64_t channel = side * channels + pack * kWide, step = kBorderSides * packs;
      if (!sums.Has(channel) && !sums.Has(channel + kWide - 1)) return;
      const Channels* const pixels = copies + n * height * width * step + side * packs + pack;
      const auto largest = BorderMaxima<kWide>::Find(pixels, step, height, width, box, side, pool_size);
      for (int c = 0; c < kWide; ++c) {
        if (largest.at[c] < 0 || !sums.Has(channel + c)) continue;
        const float grad = ToFloat(grads[(n * channels + pack * kWide + c) * lines.divisor() + line]);
        const RoiSample sample = BorderSample(box, side, largest.at[c], pool_size, height, width);
        float* const to = sums.Plane(first + n, channel + c);
        sample.ForEachTap(width, [&](const Tap& tap) { AtomicAdd(to + tap.index, tap.weight * grad); });
      }
    });
  });
}

template <class T>
Status BorderAlignBackwardCuda(const BorderAlignBackward& op, const CudaContext& cuda, Tensor<const T, 4> grad_output,
                               Tensor<const T, 4> input, Tensor<const T, 3> boxes, Tensor<T, 4> grad_input) {
  const int64_t height = input.dim(2), width = input.dim(3);
  if (width > 0 && height > INT32_MAX / width)
    return InvalidArgument("'input': expected at most 2147483647 pixels per image, got shape ",
                           ToString(input.shape()));
  const BorderImages<T> images = BorderImages<T>::Allocate(cuda, input);
  const auto add = grad_output.dim(1) % 4 == 0 ? AddToMaxima<4, T> : AddToMaxima<1, T>;
  return SumAtomically(
      cuda, input.dim(0), input.dim(1), height * width, grad_input.data(),
      [&](const ChannelSums& sums) { return add(cuda, images, boxes, op.pool_size, grad_output.data(), sums); });
}

POLYOP_ATOMIC_CUDA_KERNELS(BorderAlignBackward, BorderAlignBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
