#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/border_align/border_align_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/border_align/border_align.h"
#include "ops/border_align/border_align_samples.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kRun = 16;  // boxes whose taps are found before the channels are visited

// The pixels of a sample; none if it lies outside.
struct SampleTaps {
  int32_t pixel[4];
  float weight[4];
  int32_t count = 0;

  SampleTaps(const RoiSample& sample, int64_t width) {
    if (!sample.y.inside || !sample.x.inside) return;
    const int32_t low = sample.y.low * static_cast<int32_t>(width), high = sample.y.high * static_cast<int32_t>(width);
    AddRow(low, sample.x, sample.y.low_weight);
    if (high != low) AddRow(high, sample.x, sample.y.high_weight);
  }

 private:
  // A weight of 0 counts where there is a pixel for it, so that NaN there makes the sample NaN on the GPU and here.
  void AddRow(int32_t row, const LinearTaps& x, float w) {
    Add(row + x.low, w * x.low_weight);
    if (x.high != x.low) Add(row + x.high, w * x.high_weight);
  }
  void Add(int32_t at, float w) {
    pixel[count] = at;
    weight[count++] = w;
  }
};

// The largest of `count` samples of 16 channels.
template <class Element>
void Largest(const SampleTaps* samples, int64_t count, const Element* block, float* to) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  BlockSum largest;
  largest.Fill(kNone);
  for (int64_t s = 0; s < count; ++s) {
    BlockSum sample;
    sample.Fill(0);
    for (int32_t t = 0; t < samples[s].count; ++t) {
      sample.Add(block + static_cast<int64_t>(samples[s].pixel[t]) * kBlockChannels, samples[s].weight[t]);
    }
    largest.Max(sample);
  }
  largest.Store(1.0f, to);
  for (int64_t c = 0; c < kBlockChannels; ++c) to[c] = to[c] == kNone ? 0 : to[c];
}

template <class T>
Status BorderAlignCpu(const BorderAlign& op, const Context& context, Tensor<const T, 4> input, Tensor<const T, 3> boxes,
                      Tensor<T, 4> output) {
  const int64_t height = input.dim(2), width = input.dim(3), pixels = height * width;
  if (width > 0 && height > INT32_MAX / width)
    return InvalidArgument("'input' has shape ", ToString(input.shape()), ": pixels of a picture must fit 32 bits");
  const int64_t pictures = input.dim(0), channels = output.dim(1), number = boxes.dim(1);
  const int64_t samples = op.pool_size + 1, blocks = ChannelBlocks::BlocksFor(channels);
  const int64_t runs = (number + kRun - 1) / kRun, items = pictures * runs;
  const int64_t grain = GrainFor(static_cast<double>(kRun * kBorderSides * samples * (blocks + 2)) * 4);
  using Element = BlockElement<T>;
  const Scratch<Element> copy =
      context.Allocate<Element>(ChannelBlocks::ElementsFor(pictures * kBorderSides, channels, pixels));
  const Scratch<SampleTaps> table =
      context.Allocate<SampleTaps>(Context::NumTasks(items, grain) * kRun * kBorderSides * samples);
  if (!copy || !table) return Internal("out of memory: a copy of ", ToString(input.shape()));
  const BlocksOf<Element> sides =
      ToChannelBlocks(context, input.data(), pictures * kBorderSides, channels, pixels, copy.data());

  context.ParallelFor(items, grain, [&](int64_t task, int64_t begin, int64_t end) {
    SampleTaps* const taps = table.data() + task * kRun * kBorderSides * samples;
    HWY_ALIGN float tile[kRun * kBorderSides * kBlockChannels];
    for (int64_t item = begin; item < end; ++item) {
      const int64_t n = item / runs, first = item % runs * kRun, count = std::min(kRun, number - first) * kBorderSides;
      for (int64_t i = 0; i < count * samples; ++i) {
        const int64_t line = i / samples;
        const T* const box = boxes.data() + (n * number + first + line / kBorderSides) * 4;
        const auto side = static_cast<int>(line % kBorderSides);
        taps[i] = SampleTaps(BorderSample(box, side, i % samples, op.pool_size, height, width), width);
      }
      for (int64_t b = 0; b < blocks; ++b) {
        for (int64_t line = 0; line < count; ++line) {
          Largest(taps + line * samples, samples, sides.Block(n * kBorderSides + line % kBorderSides, b),
                  tile + line * kBlockChannels);
        }
        const int64_t channel = b * kBlockChannels;
        WriteChannels(tile, count, std::min(kBlockChannels, channels - channel), number * kBorderSides,
                      output.data() + ((n * channels + channel) * number + first) * kBorderSides);
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
POLYOP_CPU_KERNEL(BorderAlign, BorderAlignF32, BorderAlignCpu<float>);
POLYOP_CPU_KERNEL(BorderAlign, BorderAlignF16, BorderAlignCpu<Half>);
POLYOP_CPU_KERNEL(BorderAlign, BorderAlignBF16, BorderAlignCpu<BFloat16>);
}  // namespace polyop
#endif
