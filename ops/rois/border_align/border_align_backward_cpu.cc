// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rois/border_align/border_align_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/largest_block-inl.h"
#include "kernels/cpu/scatter_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/rois/border_align/border_align_backward.h"
#include "ops/rois/border_align/border_align_taps.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Maximum number of samples of an image whose taps are kept for all blocks of channels. If there are more, each block
// computes them again.
constexpr int64_t kMaxKeptSamples = 1 << 20;
constexpr int64_t kTileBoxes = 16;  // whose gradients are copied at a time

// Adds the gradient of a side, 16 channels, to its largest sample. `pixels` is [height * width][16].
void AddLargest(const SampleTaps* samples, int64_t count, const float* grad, const float* pixels, float* sums) {
  LargestBlock largest(-std::numeric_limits<float>::infinity());
  for (int64_t s = 0; s < count; ++s) {
    BlockSum sample;
    sample.Fill(0);
    for (int t = 0; samples[s].inside && t < SampleTaps::kTaps; ++t) {
      sample.Add(pixels + int64_t{samples[s].pixel[t]} * kBlockChannels, samples[s].weight[t]);
    }
    largest.Take(sample, static_cast<int32_t>(s));
  }
  BlockSum all, selected;
  all.Load(grad);
  for (int64_t s = 0; s < count; ++s) {
    if (!samples[s].inside || !largest.Select(static_cast<int32_t>(s), all, selected)) continue;
    for (int t = 0; t < SampleTaps::kTaps; ++t) {
      if (samples[s].weight[t] == 0) continue;
      AddToBlock(selected, samples[s].weight[t], sums + int64_t{samples[s].pixel[t]} * kBlockChannels);
    }
  }
}

template <class T>
Status BorderAlignBackwardCpu(const BorderAlignBackward& op, const Context& context, Tensor<const T, 4> grad_output,
                              Tensor<const T, 4> input, Tensor<const T, 3> boxes, Tensor<T, 4> grad_input) {
  const int64_t height = input.dim(2), width = input.dim(3), pixels = height * width;
  if (width > 0 && height > INT32_MAX / width)
    return InvalidArgument("'input': expected at most 2147483647 pixels per image, got shape ",
                           ToString(input.shape()));
  const int64_t channels = input.dim(1) / kBorderSides, number = boxes.dim(1), samples = op.pool_size + 1;
  const int64_t lines = number * kBorderSides;
  const bool keep = lines * samples <= kMaxKeptSamples;
  const BandSplit split = BandSplit::Of(kBorderSides, channels, height, width, 1);
  const Scratch<SampleTaps> taps = context.Allocate<SampleTaps>(keep ? lines * samples : 0);
  if (!taps) return Internal("out of memory: samples of ", ToString(boxes.shape()));
  static_assert(sizeof(SampleTaps) % sizeof(float) == 0 && alignof(SampleTaps) <= 64);
  const int64_t line_floats = keep ? 0 : samples * static_cast<int64_t>(sizeof(SampleTaps) / sizeof(float));
  const int64_t scratch = pixels * kBlockChannels + line_floats;
  for (int64_t n = 0; n < input.dim(0); ++n) {
    const auto fill = [&](int64_t k, int side, SampleTaps* to) {
      for (int64_t s = 0; s < samples; ++s) {
        const T* const box = boxes.data() + (n * number + k) * 4;
        to[s] = SampleTaps::Of(BorderSample(box, side, s, op.pool_size, height, width), width);
      }
    };
    context.ParallelFor(keep ? lines : 0, GrainFor(30.0 * static_cast<double>(samples)),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t i = begin; i < end; ++i) {
                            fill(i / kBorderSides, static_cast<int>(i % kBorderSides), taps.data() + i * samples);
                          }
                        });
    const int64_t image = n * input.dim(1) * pixels;
    POLYOP_RETURN_IF_ERROR(
        ScatterByBands(context, split, scratch, grad_input.data() + image, [&](float* copy, const BlockBand& band) {
          const int64_t side = band.image, channel = band.block * kBlockChannels;
          const int64_t held = std::min(kBlockChannels, channels - channel);
          auto* const taps_of_line = reinterpret_cast<SampleTaps*>(copy + pixels * kBlockChannels);
          InterleaveChannels(input.data() + image + (side * channels + channel) * pixels, held, pixels, pixels, copy);
          HWY_ALIGN float tile[kTileBoxes * kBorderSides * kBlockChannels];
          for (int64_t first = 0; first < number; first += kTileBoxes) {
            const int64_t some = std::min(kTileBoxes, number - first);
            InterleaveChannels(grad_output.data() + (n * channels + channel) * lines + first * kBorderSides, held,
                               lines, some * kBorderSides, tile);
            for (int64_t k = 0; k < some; ++k) {
              const int64_t line = (first + k) * kBorderSides + side;
              SampleTaps* const of_line = keep ? taps.data() + line * samples : taps_of_line;
              if (!keep) fill(first + k, static_cast<int>(side), of_line);
              AddLargest(of_line, samples, tile + (k * kBorderSides + side) * kBlockChannels, copy, band.sums);
            }
          }
        }));
  }
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(BorderAlignBackward, BorderAlignBackwardCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
