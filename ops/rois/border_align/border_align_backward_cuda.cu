// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/atomic_add.h"
#include "ops/rois/border_align/border_align_backward.h"
#include "ops/rois/border_align/border_maxima_cuda.h"

namespace polyop {
namespace {

// Each thread finds the largest sample of one side for a few channels and adds their gradients to its pixels.
template <class T>
Status BorderAlignBackwardCuda(const BorderAlignBackward& op, const CudaContext& cuda, Tensor<const T, 4> grad_output,
                               Tensor<const T, 4> input, Tensor<const T, 3> boxes, Tensor<T, 4> grad_input) {
  const int64_t height = input.dim(2), width = input.dim(3), pixels = height * width, images = input.dim(0);
  const int64_t channels = input.dim(1) / kBorderSides, number = boxes.dim(1), pool_size = op.pool_size;
  if (width > 0 && height > INT32_MAX / width)
    return InvalidArgument("'input': expected at most 2147483647 pixels per image, got shape ",
                           ToString(input.shape()));
  const T *const from = input.data(), *const box_data = boxes.data(), *const grads = grad_output.data();
  const Divider lines(number * kBorderSides), parts(BlocksFor(channels, kBorderChannels));
  return SumAtomically(cuda, images, input.dim(1), pixels, grad_input.data(), [&](const ChannelSums& sums) {
    return ForEach(cuda, images * parts.divisor() * number * kBorderSides, [=] POLYOP_DEVICE(int64_t i) {
      int64_t line, part;
      const int64_t n = parts.Split(lines.Split(i, &line), &part);
      const auto side = static_cast<int>(line % kBorderSides);
      const T* const box = box_data + (n * number + line / kBorderSides) * 4;
      // The channels of the side that this thread and these sums have in common.
      int64_t begin = side * channels + part * kBorderChannels, end = side * channels + channels;
      end = begin + kBorderChannels < end ? begin + kBorderChannels : end;
      begin = begin < sums.first ? sums.first : begin;
      end = end < sums.first + sums.count ? end : sums.first + sums.count;
      const auto held = static_cast<int>(end > begin ? end - begin : 0);
      if (held == 0) return;
      const T* const planes = from + (n * kBorderSides * channels + begin) * pixels;
      const BorderMaxima largest = BorderMaxima::Find(planes, height, width, held, box, side, pool_size);
      for (int c = 0; c < kBorderChannels; ++c) {
        if (c >= held || largest.at[c] < 0) continue;
        const int64_t channel = begin + c - side * channels;
        const float grad = ToFloat(grads[(n * channels + channel) * lines.divisor() + line]);
        const RoiSample sample = BorderSample(box, side, largest.at[c], pool_size, height, width);
        float* const to = sums.Plane(n, begin + c);
        sample.ForEachTap(width, [&](const Tap& tap) { AtomicAdd(to + tap.index, tap.weight * grad); });
      }
    });
  });
}

POLYOP_ATOMIC_CUDA_KERNELS(BorderAlignBackward, BorderAlignBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
