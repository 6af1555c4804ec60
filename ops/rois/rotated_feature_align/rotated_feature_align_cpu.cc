// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rois/rotated_feature_align/rotated_feature_align_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/rois/roi_axis.h"
#include "ops/rois/rotated_feature_align/rotated_feature_align_points.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Number of pixels whose taps are computed before the channels are visited. The pixels that they read of a block of
// channels, anywhere in the image, then stay in L2 while the blocks are summed one after the other.
constexpr int64_t kMaxPixels = 1 << 14;
constexpr int64_t kTile = 64;    // pixels written at a time
constexpr int kMaxTaps = 5 * 4;  // four pixels for each of five points

struct PixelTaps {
  int32_t index[kMaxTaps];
  float weight[kMaxTaps];
  int count = 0;

  void AddPoint(double y, double x, int64_t height, int64_t width) {
    const LinearTaps rows = RoiTaps(y, height), columns = RoiTaps(x, width);
    if (!rows.inside || !columns.inside) return;
    const auto stride = static_cast<int32_t>(width);
    Add(rows.low * stride + columns.low, rows.low_weight * columns.low_weight);
    Add(rows.low * stride + columns.high, rows.low_weight * columns.high_weight);
    Add(rows.high * stride + columns.low, rows.high_weight * columns.low_weight);
    Add(rows.high * stride + columns.high, rows.high_weight * columns.high_weight);
  }

 private:
  void Add(int32_t pixel, float w) {
    if (w == 0) return;
    index[count] = pixel;
    weight[count++] = w;
  }
};

template <class T>
PixelTaps FindTaps(const RotatedFeatureAlign& op, const T* box, int64_t height, int64_t width) {
  PixelTaps taps;
  ForEachPoint(op, box, [&](double y, double x) { taps.AddPoint(y, x, height, width); });
  return taps;
}

// Sums the taps of pixels [first, first + count) for 16 channels.
template <class Element>
void SumPixels(const Element* block, const PixelTaps* taps, int64_t first, int64_t count, float* tile) {
  for (int64_t i = 0; i < count; ++i) {
    BlockSum sum;
    sum.Load(block + (first + i) * kBlockChannels);
    for (int t = 0; t < taps[i].count; ++t) {
      sum.Add(block + static_cast<int64_t>(taps[i].index[t]) * kBlockChannels, taps[i].weight[t]);
    }
    sum.Store(1.0f, tile + i * kBlockChannels);
  }
}

template <class T>
Status RotatedFeatureAlignCpu(const RotatedFeatureAlign& op, const Context& context, Tensor<const T, 4> features,
                              Tensor<const T, 4> boxes, Tensor<T, 4> output) {
  const int64_t batch = features.dim(0), channels = features.dim(1), height = features.dim(2), width = features.dim(3);
  if (height > INT32_MAX / width)
    return InvalidArgument("'features': expected at most ", INT32_MAX, " pixels in an image, got shape ",
                           ToString(features.shape()));
  const int64_t pixels = height * width;
  using Element = BlockElement<T>;
  const Scratch<Element> copy = context.Allocate<Element>(ChannelBlocks::ElementsFor(batch, channels, pixels));
  const Scratch<PixelTaps> taps = context.Allocate<PixelTaps>(std::min(pixels, kMaxPixels));
  if (!copy || !taps) return Internal("out of memory: a copy of ", ToString(features.shape()));
  const BlocksOf<Element> images = ToChannelBlocks(context, features.data(), batch, channels, pixels, copy.data());
  const int64_t grain = GrainFor(static_cast<double>(kTile * op.points) * 8);
  for (int64_t run = 0; run < batch * pixels; run += std::min(pixels - run % pixels, kMaxPixels)) {
    const int64_t n = run / pixels, start = run % pixels, count = std::min(pixels - start, kMaxPixels);
    const int64_t tiles = (count + kTile - 1) / kTile;
    context.ParallelFor(count, GrainFor(100), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) taps[i] = FindTaps(op, boxes.data() + (run + i) * 5, height, width);
    });
    context.ParallelFor(images.blocks * tiles, grain, [&](int64_t begin, int64_t end) {
      HWY_ALIGN float tile[kTile * kBlockChannels];
      for (int64_t item = begin; item < end; ++item) {
        const int64_t b = item / tiles, first = item % tiles * kTile, tile_pixels = std::min(kTile, count - first);
        SumPixels(images.Block(n, b), taps.data() + first, start + first, tile_pixels, tile);
        const int64_t channel = b * kBlockChannels;
        WriteChannels(tile, tile_pixels, std::min(kBlockChannels, channels - channel), pixels,
                      output.data() + (n * channels + channel) * pixels + start + first);
      }
    });
  }
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(RotatedFeatureAlign, RotatedFeatureAlignCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
