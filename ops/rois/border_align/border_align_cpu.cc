// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rois/border_align/border_align_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/rois/border_align/border_align.h"
#include "ops/rois/border_align/border_align_taps.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Number of samples whose taps are computed before the channels are visited. The pixels of a channel block that these
// samples read stay in L2 while the block is pooled.
constexpr int64_t kMaxSamples = 1 << 16;
constexpr int64_t kTile = 64;  // lines (sides of boxes) that are written at a time

// Stores the maximum of `count` samples of 16 channels to `to`.
template <class Element>
void Largest(const SampleTaps* samples, int64_t count, const Element* block, float* to) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  BlockSum largest;
  largest.Fill(kNone);
  for (int64_t s = 0; s < count; ++s) {
    BlockSum sample;
    sample.Fill(0);
    for (int t = 0; samples[s].inside && t < SampleTaps::kTaps; ++t) {
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
    return InvalidArgument("'input': expected at most 2147483647 pixels per image, got shape ",
                           ToString(input.shape()));
  const int64_t images = input.dim(0), channels = output.dim(1), number = boxes.dim(1), lines = number * kBorderSides;
  const int64_t samples = op.pool_size + 1, blocks = ChannelBlocks::BlocksFor(channels);
  const int64_t max_boxes =
      std::clamp<int64_t>(kMaxSamples / (samples * kBorderSides), 1, std::max<int64_t>(number, 1));
  const int64_t max_lines = max_boxes * kBorderSides;
  using Element = BlockElement<T>;
  const Scratch<Element> copy =
      context.Allocate<Element>(ChannelBlocks::ElementsFor(images * kBorderSides, channels, pixels));
  const Scratch<SampleTaps> taps = context.Allocate<SampleTaps>(max_lines * samples);
  if (!copy || !taps) return Internal("out of memory: a copy of ", ToString(input.shape()));
  const BlocksOf<Element> sides =
      ToChannelBlocks(context, input.data(), images * kBorderSides, channels, pixels, copy.data());

  const int64_t grain = GrainFor(static_cast<double>(kTile * samples) * 4);
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t start = 0; start < lines; start += max_lines) {
      const int64_t count = std::min(max_lines, lines - start), tiles = (count + kTile - 1) / kTile;
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
          const int64_t b = item / tiles, first = item % tiles * kTile, held = std::min(kTile, count - first);
          for (int64_t i = 0; i < held; ++i) {
            const int64_t side = (first + i) % kBorderSides;
            Largest(taps.data() + (first + i) * samples, samples, sides.Block(n * kBorderSides + side, b),
                    tile + i * kBlockChannels);
          }
          const int64_t channel = b * kBlockChannels;
          WriteChannels(tile, held, std::min(kBlockChannels, channels - channel), lines,
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
POLYOP_CPU_KERNELS(BorderAlign, BorderAlignCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
