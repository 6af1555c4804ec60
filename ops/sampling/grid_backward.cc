// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/grid_backward.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sampling/grid_backward.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/scatter_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/transpose-inl.h"
#include "ops/sampling/grid_slopes-inl.h"
#include "ops/sampling/grid_taps-inl.h"
#include "ops/sampling/point_order-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The taps of a chunk of points in a band of rows, and the derivatives of their weights.
template <int kAxes, int kPerAxis>
struct ChunkTaps {
  static constexpr int kTaps = kPerAxis * kPerAxis * (kAxes == 3 ? kPerAxis : 1);
  static constexpr int64_t kPoints = std::min(128, 512 / kTaps);

  int32_t pixel[kTaps][kPoints];   // index in the band; that of an additional pixel of 0 if it is outside
  int32_t target[kTaps][kPoints];  // like `pixel`; that of the additional pixel also where the weight is 0
  float weight[kTaps][kPoints];
  float slope[kAxes][kTaps][kPoints];
  int32_t touches[kPoints];  // not 0: some tap is in the band

  // Finds the taps of `count` points in rows [begin, end). Reads points up to a vector. `none` is the additional pixel.
  void Find(const Axis* axes, const float* points, int64_t count, int64_t begin, int64_t end, int64_t none) {
    const F d;
    const I di;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const VI outside = hn::Set(di, static_cast<int32_t>(none)), first = hn::Set(di, static_cast<int32_t>(begin));
    const VI rows = hn::Set(di, static_cast<int32_t>(end - begin)), zero = hn::Zero(di);
    const VI width = hn::Set(di, static_cast<int32_t>(axes[0].extent));
    for (int64_t i = 0; i < count; i += lanes) {
      VF at[kAxes];
      LoadPoints<kAxes>(points + i * kAxes, at);
      AxisTaps<kPerAxis> taps[kAxes];
      AxisSlopes<kPerAxis> slopes[kAxes];
      for (int a = 0; a < kAxes; ++a) {
        taps[a].Find(axes[a], at[a]);
        slopes[a].Find(axes[a], at[a]);
      }
      auto touched = hn::Ne(zero, zero);
      for (int k = 0; k < kTaps; ++k) {
        const int of[3] = {k % kPerAxis, k / kPerAxis % kPerAxis, k / (kPerAxis * kPerAxis)};
        VI row = taps[1].index[of[1]], any = hn::Or(row, taps[0].index[of[0]]);
        if constexpr (kAxes == 3) {
          const VI z = taps[2].index[of[2]];
          any = hn::Or(any, z);
          row = hn::Add(row, hn::Mul(z, hn::Set(di, static_cast<int32_t>(axes[1].extent))));
        }
        row = hn::Sub(row, first);
        const auto inside = hn::And(hn::Ge(any, zero), hn::And(hn::Ge(row, zero), hn::Lt(row, rows)));
        touched = hn::Or(touched, inside);
        const VI here = hn::IfThenElse(inside, hn::Add(hn::Mul(row, width), taps[0].index[of[0]]), outside);
        VF product = hn::Set(d, 1.0f);
        for (int a = 0; a < kAxes; ++a) product = hn::Mul(product, taps[a].weight[of[a]]);
        hn::StoreU(here, di, pixel[k] + i);
        hn::StoreU(hn::IfThenElse(hn::RebindMask(di, hn::Eq(product, hn::Zero(d))), outside, here), di, target[k] + i);
        hn::StoreU(product, d, weight[k] + i);
        for (int a = 0; a < kAxes; ++a) {
          VF change = slopes[a].slope[of[a]];
          for (int b = 0; b < kAxes; ++b) change = b == a ? change : hn::Mul(change, taps[b].weight[of[b]]);
          hn::StoreU(change, d, slope[a][k] + i);
        }
      }
      hn::StoreU(hn::VecFromMask(di, touched), di, touches + i);
    }
  }
};

// Some rows of 16 channels of an image, channels last, followed by an additional pixel, and the sums of their
// gradients. Either may be null.
struct PixelBand {
  const float* value;
  float* sums;
  int64_t pitch;  // elements per pixel
};

// Adds the gradients of `count` points, those with these indices in grad [points][16], to the pixels of their taps, and
// sets to[a * to_pitch + i] to the gradient of coordinate a of point i in this band.
template <bool kOfImage, bool kOfGrid, int kAxes, int kPerAxis>
void AddPoints(const ChunkTaps<kAxes, kPerAxis>& taps, const int32_t* index, int64_t count, const float* grad,
               const PixelBand& band, float* to, int64_t to_pitch) {
  constexpr int kTaps = ChunkTaps<kAxes, kPerAxis>::kTaps;
  constexpr int64_t kAhead = 8;
  const BlockTag d;
  for (int64_t i = 0; i < count; ++i) {
    if (i + kAhead < count) hwy::Prefetch(grad + index[i + kAhead] * kBlockChannels);
    BlockSum g;
    g.Load(grad + index[i] * kBlockChannels);
    if constexpr (kOfGrid) {
      BlockSum slopes[kAxes];
      for (BlockSum& slope : slopes) slope.Fill(0);
      for (int k = 0; k < kTaps; ++k) {
        const float* const pixel = band.value + taps.pixel[k][i] * band.pitch;
        for (int a = 0; a < kAxes; ++a) slopes[a].Add(pixel, taps.slope[a][k][i]);
      }
      hn::Vec<BlockTag> products[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
      for (int a = 0; a < kAxes; ++a) {
        for (int64_t v = 0; v < kBlockVectors; ++v) products[a] = hn::MulAdd(g.v[v], slopes[a].v[v], products[a]);
      }
      float sums[4];
      hn::StoreU(SumsOfLanes(d, products), QuadTag(), sums);
      // 0 times a NaN gradient would be NaN.
      for (int a = 0; a < kAxes; ++a) to[a * to_pitch + i] = taps.touches[i] != 0 ? sums[a] : 0;
    }
    if constexpr (kOfImage) {
      for (int k = 0; k < kTaps; ++k) {
        AddToBlock(g, taps.weight[k][i], band.sums + taps.target[k][i] * band.pitch);
      }
    }
  }
}

// How an image is divided into work items: 16 channels and a band of rows each. Items write different gradients of the
// image, and have sums of the points' gradients, which are added in the end. Memory is bounded by working on a few
// items and on a segment of the points at a time.
struct ImageSplit {
  int64_t rows, width, points;
  bool of_image, of_grid;
  int64_t blocks, pitch;  // elements per pixel of a band
  int64_t band_rows, bands, items;
  int64_t segment;  // points
  int64_t at_once;  // items
  bool sorted;      // points are visited in the order of rows; pays unless the image is in the L2 cache

  static ImageSplit Of(int64_t rows, int64_t width, int64_t channels, int64_t points, bool of_image, bool of_grid) {
    constexpr int64_t kBytes = 24 << 20, kBandBytes = 8 << 20, kL2Bytes = 1 << 20, kEnoughItems = 4, kMinRows = 8,
                      kSegment = 1 << 18;
    constexpr int64_t kFloat = sizeof(float);
    ImageSplit split{rows, width, points, of_image, of_grid, ChannelBlocks::BlocksFor(channels), 0, 0,
                     0,    0,     0,      0,        false};
    split.pitch = kBlockChannels * ((of_image ? 1 : 0) + (of_grid ? 1 : 0));
    split.band_rows = std::clamp<int64_t>(kBandBytes / (width * split.pitch * kFloat), 1, rows);
    if (split.blocks < kEnoughItems) {
      const int64_t bands = (kEnoughItems + split.blocks - 1) / split.blocks;
      split.band_rows = std::min(split.band_rows, std::max((rows + bands - 1) / bands, std::min(rows, kMinRows)));
    }
    split.bands = (rows + split.band_rows - 1) / split.band_rows;
    split.items = split.blocks * split.bands;
    split.segment = std::min(points, kSegment);
    split.sorted = rows * width * split.pitch * kFloat > kL2Bytes;
    const int64_t by_bands = kBytes / (split.band_size() * kFloat);
    const int64_t by_blocks = kBytes / (split.segment * kBlockChannels * kFloat) * split.bands;
    const int64_t by_slopes = of_grid ? kBytes / (split.segment * 3 * kFloat) : split.items;
    split.at_once =
        std::clamp<int64_t>(std::min({by_bands, by_blocks, by_slopes}), 1, std::min(split.items, Context::kMaxTasks));
    return split;
  }
  // Elements of a band, with the additional pixel.
  int64_t band_size() const { return (band_rows * width + 1) * pitch; }
  // Maximum number of blocks of which `at_once` consecutive items are a part.
  int64_t blocks_at_once() const { return std::min(blocks, (at_once + bands - 2) / bands + 1); }
};

// An item, and its band in memory.
struct BandItem {
  int64_t block, begin, end;  // rows
  int64_t pixels;
  PixelBand band;

  static BandItem Of(const ImageSplit& split, int64_t item, float* memory) {
    const int64_t begin = item % split.bands * split.band_rows, end = std::min(split.rows, begin + split.band_rows);
    float* const sums = split.of_image ? memory + (split.of_grid ? kBlockChannels : 0) : nullptr;
    return {item / split.bands,
            begin,
            end,
            (end - begin) * split.width,
            {split.of_grid ? memory : nullptr, sums, split.pitch}};
  }
};

template <int kAxes, int kPerAxis, class T>
Status OneImageBackward(const Context& context, const Axis* axes, const T* grad_output, const T* image,
                        int64_t channels, const float* grid, int64_t points, T* grad_image, float* grad_grid) {
  using Taps = ChunkTaps<kAxes, kPerAxis>;
  const bool of_grid = kPerAxis > 1 && grad_grid != nullptr, of_image = grad_image != nullptr;
  const int64_t rows = axes[1].extent * (kAxes == 3 ? axes[2].extent : 1), pixels = rows * axes[0].extent;
  const ImageSplit split = ImageSplit::Of(rows, axes[0].extent, channels, points, of_image, of_grid);
  const int64_t segment = split.segment;
  PointOrder<kAxes> order(context, segment, rows);
  const Scratch<float> memory = context.Allocate<float>(split.at_once * split.band_size());
  const Scratch<float> grads =
      context.Allocate<float>(split.sorted ? split.blocks_at_once() * segment * kBlockChannels : 0);
  const Scratch<float> slopes = context.Allocate<float>(of_grid ? split.at_once * segment * kAxes : 0);
  if (!order.ok() || !memory || !grads || !slopes) {
    return Internal("out of memory: ", split.at_once, " bands of ", split.band_size(), " elements");
  }
  if (of_grid) std::fill_n(grad_grid, points * kAxes, 0.0f);
  const auto channels_of = [&](int64_t block) { return std::min(kBlockChannels, channels - block * kBlockChannels); };
  for (int64_t first = 0; first < split.items; first += split.at_once) {
    const int64_t some = std::min(split.at_once, split.items - first), first_block = first / split.bands;
    const int64_t blocks = (first + some - 1) / split.bands + 1 - first_block;
    for (int64_t from = 0; from < points; from += segment) {
      const int64_t count = std::min(segment, points - from);
      if (first == 0 || segment < points) {  // else the order is that of the items before
        const auto arrange = split.sorted ? &PointOrder<kAxes>::template Sort<kPerAxis> : &PointOrder<kAxes>::Keep;
        (order.*arrange)(context, axes, grid + from * kAxes, count);
      }
      constexpr int64_t kRun = 1024;
      const int64_t runs = (count + kRun - 1) / kRun;
      context.ParallelFor(split.sorted ? blocks * runs : 0, 4, [&](int64_t begin, int64_t end) HWY_ATTR {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t block = i / runs, p = i % runs * kRun;
          InterleaveChannels(grad_output + (first_block + block) * kBlockChannels * points + from + p,
                             channels_of(first_block + block), points, std::min(kRun, count - p),
                             grads.data() + (block * segment + p) * kBlockChannels);
        }
      });
      context.ParallelFor(some, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
        Taps taps;
        HWY_ALIGN float tile[Taps::kPoints * kBlockChannels];
        for (int64_t slot = begin; slot < end; ++slot) {
          float* const at = memory.data() + slot * split.band_size();
          const BandItem item = BandItem::Of(split, first + slot, at);
          const int64_t channel = item.block * kBlockChannels, held = channels_of(item.block);
          const int64_t first_pixel = channel * pixels + item.begin * split.width;
          if (from == 0) {
            std::fill_n(at, (item.pixels + 1) * split.pitch, 0.0f);
            if (of_grid) InterleaveChannels(image + first_pixel, held, pixels, item.pixels, at, split.pitch);
          }
          const auto range = order.Of(item.begin, item.end);
          float* const to = slopes.data() + (of_grid ? slot * segment * kAxes : 0);
          for (int64_t p = range.begin; p < range.end; p += Taps::kPoints) {
            const int64_t in_chunk = std::min(Taps::kPoints, range.end - p);
            taps.Find(axes, order.at() + p * kAxes, in_chunk, item.begin, item.end, item.pixels);
            const int32_t* index = order.index() + p;
            const float* grad = grads.data() + (item.block - first_block) * segment * kBlockChannels;
            if (!split.sorted) {
              InterleaveChannels(grad_output + channel * points + from + p, held, points, in_chunk, tile);
              index = order.index();  // 0, 1, …
              grad = tile;
            }
            const auto add =
                of_grid ? (of_image ? AddPoints<true, true, kAxes, kPerAxis> : AddPoints<false, true, kAxes, kPerAxis>)
                        : AddPoints<true, false, kAxes, kPerAxis>;
            add(taps, index, in_chunk, grad, item.band, to + p - range.begin, segment);
          }
          if (of_image && from + segment >= points) {
            WriteChannels(item.band.sums, item.pixels, held, pixels, grad_image + first_pixel, split.pitch);
          }
        }
      });
      if (!of_grid) continue;
      context.ParallelFor(order.size(), GrainFor(2 * static_cast<double>(blocks)), [&](int64_t begin, int64_t end) {
        for (int64_t slot = 0; slot < some; ++slot) {
          const BandItem item = BandItem::Of(split, first + slot, nullptr);
          const auto range = order.Of(item.begin, item.end);
          const float* const of_item = slopes.data() + slot * segment * kAxes;
          for (int64_t p = std::max(begin, range.begin); p < std::min(end, range.end); ++p) {
            float* const to = grad_grid + (from + order.index()[p]) * kAxes;
            for (int a = 0; a < kAxes; ++a) to[a] += of_item[a * segment + p - range.begin];
          }
        }
      });
    }
  }
  return Status::Ok();
}

template <int kAxes, class T>
Status ImagesBackward(const Context& context, GridRule::Interpolation interpolation, const GridAxis* axes,
                      const Tensor<const T, kAxes + 2>& grad_output, const Tensor<const T, kAxes + 2>& input,
                      const float* grid, T* grad_input, float* grad_grid) {
  const int64_t channels = input.dim(1), pixels = PlanePixels(input.shape()), points = PlanePixels(grad_output.shape());
  const bool nothing = grad_output.size() == 0 || pixels == 0;
  const bool no_slopes = nothing || interpolation == GridRule::Interpolation::kNearest;
  if (grad_grid != nullptr && no_slopes) std::fill_n(grad_grid, input.dim(0) * points * kAxes, 0.0f);
  if (grad_input != nullptr && nothing) std::fill_n(grad_input, input.size(), T{});
  if (nothing || (grad_input == nullptr && (grad_grid == nullptr || no_slopes))) return Status::Ok();
  const auto one_image = [&] {
    switch (interpolation) {
      case GridRule::Interpolation::kNearest: return OneImageBackward<kAxes, 1, T>;
      case GridRule::Interpolation::kBilinear: return OneImageBackward<kAxes, 2, T>;
      case GridRule::Interpolation::kBicubic: break;
    }
    return OneImageBackward < kAxes, kAxes == 2 ? 4 : 2, T > ;
  }();
  for (int64_t n = 0; n < input.dim(0); ++n) {
    POLYOP_RETURN_IF_ERROR(one_image(context, axes, grad_output.data() + n * channels * points,
                                     input.data() + n * channels * pixels, channels, grid + n * points * kAxes, points,
                                     grad_input == nullptr ? nullptr : grad_input + n * channels * pixels,
                                     grad_grid == nullptr ? nullptr : grad_grid + n * points * kAxes));
  }
  return Status::Ok();
}

// Dispatch tables take templates with one argument.
template <class T>
Status PlanesBackward(const Context& context, GridRule::Interpolation interpolation, const GridAxis* axes,
                      const Tensor<const T, 4>& grad_output, const Tensor<const T, 4>& input, const float* points,
                      T* grad_input, float* grad_points) {
  return ImagesBackward<2, T>(context, interpolation, axes, grad_output, input, points, grad_input, grad_points);
}
template <class T>
Status SpacesBackward(const Context& context, GridRule::Interpolation interpolation, const GridAxis* axes,
                      const Tensor<const T, 5>& grad_output, const Tensor<const T, 5>& input, const float* points,
                      T* grad_input, float* grad_points) {
  return ImagesBackward<3, T>(context, interpolation, axes, grad_output, input, points, grad_input, grad_points);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_SIMD_TABLES(PlanesBackward, PlanesBackward);
POLYOP_SIMD_TABLES(SpacesBackward, SpacesBackward);

template <class T>
Status Sample2dBackward(const Context& context, GridRule::Interpolation interpolation, const GridAxis* axes,
                        const Tensor<const T, 4>& grad_output, const Tensor<const T, 4>& input, const float* points,
                        T* grad_input, float* grad_points) {
  return POLYOP_SIMD(PlanesBackward, T)(context, interpolation, axes, grad_output, input, points, grad_input,
                                        grad_points);
}
POLYOP_FOR_FLOATS(Sample2dBackward);

template <class T>
Status Sample3dBackward(const Context& context, GridRule::Interpolation interpolation, const GridAxis* axes,
                        const Tensor<const T, 5>& grad_output, const Tensor<const T, 5>& input, const float* points,
                        T* grad_input, float* grad_points) {
  return POLYOP_SIMD(SpacesBackward, T)(context, interpolation, axes, grad_output, input, points, grad_input,
                                        grad_points);
}
POLYOP_FOR_FLOATS(Sample3dBackward);
}  // namespace polyop
#endif
