// SPDX-License-Identifier: Apache-2.0
// The gradient of pooling by taps (pool_by_taps-inl.h) with respect to the feature map: adds the gradient of each bin
// to its weighted pixels. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_ROIS_SCATTER_BY_TAPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_ROIS_SCATTER_BY_TAPS_INL_H_
#undef POLYOP_OPS_ROIS_SCATTER_BY_TAPS_INL_H_
#else
#define POLYOP_OPS_ROIS_SCATTER_BY_TAPS_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "kernels/cpu/scatter_blocks-inl.h"
#include "ops/rois/pool_by_taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Number of bins of a RoI that are processed at a time, so that their gradients stay in the L1 cache.
constexpr int64_t kTileBins = 256;

// The pixels of a band, as indices of an image's pixels.
struct BandPixels {
  int32_t first;
  uint32_t count;
  float* sums;

  static BandPixels Of(const BlockBand& band) {
    return {static_cast<int32_t>(band.begin * band.width), static_cast<uint32_t>((band.end - band.begin) * band.width),
            band.sums};
  }
  HWY_INLINE bool Has(int32_t pixel) const { return static_cast<uint32_t>(pixel - first) < count; }
  HWY_INLINE float* At(int32_t pixel) const { return sums + static_cast<int64_t>(pixel - first) * kBlockChannels; }
};

// The kept taps of up to kTileBins bins of a RoI, and the first and the last pixel that they touch.
struct KeptTaps {
  int64_t start;  // -1: the taps are not kept, and all pixels count as touched
  int32_t first, last;
};

// Adds the gradients in tile [bins][16] to the pixels of the taps that end at ends[b] for bin b. Without kInside, some
// pixels are outside of the band.
template <bool kInside>
void AddKeptTaps(const Tap* taps, const int32_t* ends, int64_t bins, const float* tile, const BandPixels& pixels) {
  const Tap* tap = taps;
  for (int64_t bin = 0; bin < bins; ++bin) {
    BlockSum grad;
    grad.Load(tile + bin * kBlockChannels);
    for (const Tap* const end = taps + ends[bin]; tap < end; ++tap) {
      if (kInside || pixels.Has(tap->index)) AddToBlock(grad, tap->weight, pixels.At(tap->index));
    }
  }
}

template <class Roi>
void AddTapsAsFound(const Roi& roi, int64_t first_bin, int64_t bins, const float* tile, const BandPixels& pixels) {
  for (int64_t bin = 0; bin < bins; ++bin) {
    BlockSum grad;
    grad.Load(tile + bin * kBlockChannels);
    roi.ForEachTap(first_bin + bin, [&](const Tap& tap) HWY_ATTR {
      if (pixels.Has(tap.index)) AddToBlock(grad, tap.weight, pixels.At(tap.index));
    });
  }
}

/// Computes grad_input [images, channels, height, width] from grad_output [count, channels, bins]. key_of(r) and
/// roi_of(r) are those of PoolByTaps. `level` gives the extents of the map; its data is not read. Sums are in float and
/// rounded once.
template <class T, class Grad, class KeyOf, class RoiOf>
Status ScatterByTaps(const Context& context, const RoiLevel<T>& level, int64_t images, int64_t channels, int64_t count,
                     int64_t bins, const KeyOf& key_of, const RoiOf& roi_of, const Grad* grad_output, T* grad_input) {
  if (images * channels * level.height * level.width == 0) return Status::Ok();
  POLYOP_RETURN_IF_ERROR(CheckLevels<T>({&level, 1}));
  const int64_t tiles = (bins + kTileBins - 1) / kTileBins;  // of a RoI
  const Scratch<RoiSortKey> order = context.Allocate<RoiSortKey>(count);
  const Scratch<KeptTaps> kept = context.Allocate<KeptTaps>(count * tiles);
  const Scratch<int32_t> ends = context.Allocate<int32_t>(count * bins);
  if (!order || !kept || !ends) return Internal("out of memory: ", count, " rois of ", bins, " bins");
  for (int64_t r = 0; r < count; ++r) order[r] = key_of(r);
  std::sort(order.data(), order.data() + count);
  const auto bins_of = [&](int64_t item) { return std::min(kTileBins, bins - item % tiles * kTileBins); };
  int64_t room = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double bound = roi_of(order[i].roi).TapsBound();
    for (int64_t item = i * tiles; item < (i + 1) * tiles; ++item) {
      const double needed = std::ceil(bound * static_cast<double>(bins_of(item)));
      const bool fits = static_cast<double>(room) + needed <= static_cast<double>(kMaxKeptTaps);
      kept[item] = {fits ? room : -1, 0, static_cast<int32_t>(level.height * level.width - 1)};
      if (fits) room += static_cast<int64_t>(needed);
    }
  }
  const Scratch<Tap> taps = context.Allocate<Tap>(room);
  const BandSplit split = BandSplit::Of(images, channels, level.height, level.width);
  const int64_t tile_floats = std::min(bins, kTileBins) * kBlockChannels;
  if (!taps) return Internal("out of memory: taps of ", count, " rois");

  context.ParallelFor(count * tiles, 8, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      if (kept[item].start < 0) continue;
      const int64_t i = item / tiles, bin = item % tiles * kTileBins;
      const auto roi = roi_of(order[i].roi);
      Tap* const to = taps.data() + kept[item].start;
      int32_t found = 0, first = INT32_MAX, last = -1;
      for (int64_t b = bin; b < bin + bins_of(item); ++b) {
        roi.ForEachTap(b, [&](const Tap& tap) {
          to[found++] = tap;
          first = std::min(first, tap.index);
          last = std::max(last, tap.index);
        });
        ends[i * bins + b] = found;
      }
      kept[item].first = first;
      kept[item].last = last;
    }
  });

  const auto first_of = [&](int64_t image) {
    return std::partition_point(order.data(), order.data() + count,
                                [&](const RoiSortKey& key) { return key.image < image; }) -
           order.data();
  };
  return ScatterByBands(context, split, tile_floats, grad_input, [&](float* tile, const BlockBand& band) {
    const BandPixels pixels = BandPixels::Of(band);
    const int64_t channel = band.block * kBlockChannels, held = std::min(kBlockChannels, channels - channel);
    const int64_t end = first_of(band.image + 1) * tiles;
    for (int64_t item = first_of(band.image) * tiles; item < end; ++item) {
      const KeptTaps& of = kept[item];
      if (!band.Meets(of.first / band.width, of.last / band.width)) continue;
      const int64_t i = item / tiles, bin = item % tiles * kTileBins, some = bins_of(item);
      InterleaveChannels(grad_output + (order[i].roi * channels + channel) * bins + bin, held, bins, some, tile);
      if (of.start < 0) {
        AddTapsAsFound(roi_of(order[i].roi), bin, some, tile, pixels);
        continue;
      }
      const bool inside = pixels.Has(of.first) && pixels.Has(of.last);
      (inside ? AddKeptTaps<true> : AddKeptTaps<false>)(taps.data() + of.start, ends.data() + i * bins + bin, some,
                                                        tile, pixels);
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
