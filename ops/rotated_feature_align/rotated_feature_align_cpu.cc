#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rotated_feature_align/rotated_feature_align_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/rois/roi_axis.h"
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/rotated_feature_align/rotated_feature_align.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Pixels whose taps are found before the channels are visited. What they read of a block of channels, which may lie
// anywhere in the picture, stays in L2 while one block is summed after the other.
constexpr int64_t kMostPixels = 1 << 14;
constexpr int64_t kTile = 64;    // pixels that are written at a time
constexpr int kMaxTaps = 5 * 4;  // five points of four pixels

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
  double v[5];
  for (int k = 0; k < 5; ++k) v[k] = ToFloat(box[k]);
  const double scale = op.spatial_scale, y = v[0] * scale, x = v[1] * scale;
  const double half_w = v[2] * scale / 2, half_h = v[3] * scale / 2;
  PixelTaps taps;
  if (!std::isfinite(y + x + half_w + half_h + v[4])) return taps;
  taps.AddPoint(y, x, height, width);
  if (op.points == 1) return taps;
  const double wx = std::cos(v[4]) * half_w, wy = std::sin(v[4]) * half_w;
  const double hx = -std::sin(v[4]) * half_h, hy = std::cos(v[4]) * half_h;
  taps.AddPoint(y + wy + hy, x + wx + hx, height, width);
  taps.AddPoint(y - wy + hy, x - wx + hx, height, width);
  taps.AddPoint(y - wy - hy, x - wx - hx, height, width);
  taps.AddPoint(y + wy - hy, x + wx - hx, height, width);
  return taps;
}

// Pixels [first, first + count) of 16 channels, and their taps.
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
    return InvalidArgument("'features' has shape ", ToString(features.shape()),
                           ": pixels of a picture must fit 32 bits");
  const int64_t pixels = height * width;
  using Element = BlockElement<T>;
  const Scratch<Element> copy = context.Allocate<Element>(ChannelBlocks::ElementsFor(batch, channels, pixels));
  const Scratch<PixelTaps> taps = context.Allocate<PixelTaps>(std::min(pixels, kMostPixels));
  if (!copy || !taps) return Internal("out of memory: a copy of ", ToString(features.shape()));
  const BlocksOf<Element> pictures = ToChannelBlocks(context, features.data(), batch, channels, pixels, copy.data());
  const int64_t grain = GrainFor(static_cast<double>(kTile * op.points) * 8);
  for (int64_t run = 0; run < batch * pixels; run += std::min(pixels - run % pixels, kMostPixels)) {
    const int64_t n = run / pixels, start = run % pixels, count = std::min(pixels - start, kMostPixels);
    const int64_t tiles = (count + kTile - 1) / kTile;
    context.ParallelFor(count, GrainFor(100), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) taps[i] = FindTaps(op, boxes.data() + (run + i) * 5, height, width);
    });
    context.ParallelFor(pictures.blocks * tiles, grain, [&](int64_t begin, int64_t end) {
      HWY_ALIGN float tile[kTile * kBlockChannels];
      for (int64_t item = begin; item < end; ++item) {
        const int64_t b = item / tiles, first = item % tiles * kTile, some = std::min(kTile, count - first);
        SumPixels(pictures.Block(n, b), taps.data() + first, start + first, some, tile);
        const int64_t channel = b * kBlockChannels;
        WriteChannels(tile, some, std::min(kBlockChannels, channels - channel), pixels,
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
POLYOP_CPU_KERNEL(RotatedFeatureAlign, RotatedFeatureAlignF32, RotatedFeatureAlignCpu<float>);
POLYOP_CPU_KERNEL(RotatedFeatureAlign, RotatedFeatureAlignF16, RotatedFeatureAlignCpu<Half>);
POLYOP_CPU_KERNEL(RotatedFeatureAlign, RotatedFeatureAlignBF16, RotatedFeatureAlignCpu<BFloat16>);
}  // namespace polyop
#endif
