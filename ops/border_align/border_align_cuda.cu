#include "kernels/cuda/cuda.h"
#include "ops/border_align/border_align.h"
#include "ops/border_align/border_align_samples.h"

namespace polyop {
namespace {

constexpr int64_t kBorderChannels = 8;  // channels of one side that a thread reduces with the same samples

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
    const int64_t first = part * kBorderChannels,
                  held = channels - first < kBorderChannels ? channels - first : kBorderChannels;
    const T* const planes = from + ((n * kBorderSides + side) * channels + first) * height * width;
    float largest[kBorderChannels];
    for (float& value : largest) value = -INFINITY;
    for (int64_t s = 0; s <= pool_size; ++s) {
      const RoiSample sample = BorderSample(box, side, s, pool_size, height, width);
      for (int64_t c = 0; c < held; ++c) {
        const float value = sample.Of(planes + c * height * width, width);
        if (value > largest[c]) largest[c] = value;
      }
    }
    for (int64_t c = 0; c < held; ++c) {
      to[(n * channels + first + c) * lines.divisor() + line] = FromFloat<T>(largest[c] == -INFINITY ? 0 : largest[c]);
    }
  });
}

POLYOP_CUDA_KERNELS(BorderAlign, BorderAlignCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
