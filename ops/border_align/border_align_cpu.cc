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

// Samples whose taps are found before the channels are visited. What they read of a block of channels stays in L2 while
// one block is pooled after the other.
constexpr int64_t kMostSamples = 1 << 16;
constexpr int64_t kTile = 64;  // lines of samples that are written at a time
constexpr int kFour = 4;

// The pixels of a sample. If there are fewer than four, the last one comes again, each time with half of the weight
// that is left.
struct SampleTaps {
  int32_t pixel[kFour];
  float weight[kFour];
  bool inside;  // else the sample is 0

  static SampleTaps Of(const RoiSample& sample, int64_t width) {
    SampleTaps taps{};
    taps.inside = sample.y.inside && sample.x.inside;
    if (!taps.inside) return taps;
    const int32_t low = sample.y.low * static_cast<int32_t>(width), high = sample.y.high * static_cast<int32_t>(width);
    int count = taps.AddRow(0, low, sample.x, sample.y.low_weight);
    if (high != low) count = taps.AddRow(count, high, sample.x, sample.y.high_weight);
    for (; count < kFour; ++count) {
      taps.weight[count - 1] /= 2;
      taps.Add(count, taps.pixel[count - 1], taps.weight[count - 1]);
    }
    return taps;
  }

 private:
  // A weight of 0 counts where there is a pixel for it, so that NaN there makes the sample NaN on the GPU and here.
  int AddRow(int count, int32_t row, const LinearTaps& x, float w) {
    Add(count++, row + x.low, w * x.low_weight);
    if (x.high != x.low) Add(count++, row + x.high, w * x.high_weight);
    return count;
  }
  void Add(int at, int32_t index, float w) {
    pixel[at] = index;
    weight[at] = w;
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
    for (int t = 0; samples[s].inside && t < kFour; ++t) {
      sample.Add(block + static_cast<int64_t>(samples[s].pixel[t]) * kBlockChannels, samples[s].weight[t]);
    }
    largest.Max(sample);
  }
  largest.ZeroWhere(kNone);
  largest.Store(1.0f, to);
}

template <class T>
Status BorderAlignCpu(const BorderAlign& op, const Context& context, Tensor<const T, 4> input, Tensor<const T, 3> boxes,
                      Tensor<T, 4> output) {
  const int64_t height = input.dim(2), width = input.dim(3), pixels = height * width;
  if (width > 0 && height > INT32_MAX / width)
    return InvalidArgument("'input' has shape ", ToString(input.shape()), ": pixels of a picture must fit 32 bits");
  const int64_t pictures = input.dim(0), channels = output.dim(1), number = boxes.dim(1), lines = number * kBorderSides;
  const int64_t samples = op.pool_size + 1, blocks = ChannelBlocks::BlocksFor(channels);
  const int64_t most = std::clamp<int64_t>(kMostSamples / (samples * kBorderSides), 1, std::max<int64_t>(number, 1));
  const int64_t most_lines = most * kBorderSides;
  using Element = BlockElement<T>;
  const Scratch<Element> copy =
      context.Allocate<Element>(ChannelBlocks::ElementsFor(pictures * kBorderSides, channels, pixels));
  const Scratch<SampleTaps> taps = context.Allocate<SampleTaps>(most_lines * samples);
  if (!copy || !taps) return Internal("out of memory: a copy of ", ToString(input.shape()));
  const BlocksOf<Element> sides =
      ToChannelBlocks(context, input.data(), pictures * kBorderSides, channels, pixels, copy.data());

  const int64_t grain = GrainFor(static_cast<double>(kTile * samples) * 4);
  for (int64_t n = 0; n < pictures; ++n) {
    for (int64_t start = 0; start < lines; start += most_lines) {
      const int64_t count = std::min(most_lines, lines - start), tiles = (count + kTile - 1) / kTile;
      context.ParallelFor(count * samples, GrainFor(30), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t line = start + i / samples;
          const T* const box = boxes.data() + (n * number + line / kBorderSides) * 4;
          const auto side = static_cast<int>(line % kBorderSides);
          taps[i] = SampleTaps::Of(BorderSample(box, side, i % samples, op.pool_size, height, width), width);
        }
      });
      context.ParallelFor(blocks * tiles, grain, [&](int64_t begin, int64_t end) {
        HWY_ALIGN float tile[kTile * kBlockChannels];
        for (int64_t item = begin; item < end; ++item) {
          const int64_t b = item / tiles, first = item % tiles * kTile, some = std::min(kTile, count - first);
          for (int64_t i = 0; i < some; ++i) {
            const int64_t side = (first + i) % kBorderSides;
            Largest(taps.data() + (first + i) * samples, samples, sides.Block(n * kBorderSides + side, b),
                    tile + i * kBlockChannels);
          }
          const int64_t channel = b * kBlockChannels;
          WriteChannels(tile, some, std::min(kBlockChannels, channels - channel), lines,
                        output.data() + (n * channels + channel) * lines + start + first);
        }
      });
    }
  }
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
