// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/feature_maps/carafe/carafe_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/feature_maps/carafe/carafe.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Maximum number of output pixels of a row whose masks are gathered before the channels are visited.
constexpr int64_t kRun = 64;

// The rows or columns [first, last) of the window around a pixel, clipped to the image.
struct Window {
  int64_t middle, first, last;

  static Window Around(int64_t middle, int64_t half, int64_t extent) {
    return {middle, std::max<int64_t>(middle - half, 0), std::min(middle + half + 1, extent)};
  }
};

// Sums the window of kSame output pixels that share it. Their weights are `taps` apart.
template <int kSame>
HWY_INLINE void SumWindow(const float* block, int64_t width, const Window& rows, const Window& columns, int64_t half,
                          int64_t kernel, const float* weights, float* to) {
  BlockSum sum[kSame];
  for (BlockSum& s : sum) s.Fill(0);
  const int64_t taps = kernel * kernel;
  for (int64_t y = rows.first; y < rows.last; ++y) {
    const float* const line = block + y * width * kBlockChannels;
    const float* const weight = weights + (y - rows.middle + half) * kernel - columns.middle + half;
    for (int64_t x = columns.first; x < columns.last; ++x) {
      BlockSum pixel;
      pixel.Load(line + x * kBlockChannels);
      for (int s = 0; s < kSame; ++s) sum[s].Add(pixel, weight[s * taps + x]);
    }
  }
  for (int s = 0; s < kSame; ++s) sum[s].Store(1.0f, to + s * kBlockChannels);
}

template <class T>
Status CarafeCpu(const Carafe& op, const Context& context, Tensor<const T, 4> features, Tensor<const T, 4> masks,
                 Tensor<T, 4> output) {
  const int64_t height = features.dim(2), width = features.dim(3), pixels = height * width;
  const int64_t out_height = output.dim(2), out_width = output.dim(3), out_pixels = out_height * out_width;
  const int64_t images = features.dim(0) * op.group_size, channels = features.dim(1) / op.group_size;
  const int64_t scale = static_cast<int64_t>(op.scale_factor), kernel = op.kernel_size, half = kernel / 2;
  const int64_t taps = kernel * kernel, run = std::clamp<int64_t>(4096 / taps, 4, kRun);
  const int64_t runs = (out_width + run - 1) / run, items = images * out_height * runs;
  const int64_t blocks = ChannelBlocks::BlocksFor(channels);
  const int64_t grain = GrainFor(static_cast<double>(run * taps * blocks * kBlockVectors) * 0.5);
  const Scratch<float> copy = context.Allocate<float>(ChannelBlocks::ElementsFor(images, channels, pixels));
  const Scratch<float> weights = context.Allocate<float>(Context::NumTasks(items, grain) * run * taps);
  if (!copy || !weights) return Internal("out of memory: a copy of ", ToString(features.shape()));
  const ChannelBlocks groups = ToChannelBlocks(context, features.data(), images, channels, pixels, copy.data());

  context.ParallelFor(items, grain, [&](int64_t task, int64_t begin, int64_t end) {
    float* const weight = weights.data() + task * run * taps;  // [run][taps]
    HWY_ALIGN float tile[kRun * kBlockChannels];
    Window columns[kRun];
    for (int64_t item = begin; item < end; ++item) {
      const int64_t image = item / runs / out_height, row = item / runs % out_height, first = item % runs * run;
      const int64_t count = std::min(run, out_width - first), out = row * out_width + first;
      const Window rows = Window::Around(row / scale, half, height);
      for (int64_t t = 0; t < taps; ++t) {
        const T* const mask = masks.data() + (image * taps + t) * out_pixels + out;
        for (int64_t i = 0; i < count; ++i) weight[i * taps + t] = ToFloat(mask[i]);
      }
      for (int64_t i = 0; i < count; ++i) columns[i] = Window::Around((first + i) / scale, half, width);
      for (int64_t b = 0; b < blocks; ++b) {
        const float* const block = groups.Block(image, b);
        for (int64_t i = 0; i < count;) {
          const bool two = i + 1 < count && columns[i + 1].middle == columns[i].middle;
          (two ? SumWindow<2> : SumWindow<1>)(block, width, rows, columns[i], half, kernel, weight + i * taps,
                                              tile + i * kBlockChannels);
          i += two ? 2 : 1;
        }
        const int64_t channel = b * kBlockChannels;
        WriteChannels(tile, count, std::min(kBlockChannels, channels - channel), out_pixels,
                      output.data() + (image * channels + channel) * out_pixels + out);
      }
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(Carafe, CarafeCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
