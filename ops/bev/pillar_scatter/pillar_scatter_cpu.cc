// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/pillar_scatter/pillar_scatter.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/bev/pillar_scatter/pillar_scatter_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"

#ifndef POLYOP_OPS_BEV_PILLAR_SCATTER_PILLAR_SCATTER_CPU_
#define POLYOP_OPS_BEV_PILLAR_SCATTER_PILLAR_SCATTER_CPU_

#include <algorithm>
#include <span>
#include <utility>

#include "core/words.h"
#include "kernels/cpu/type_pairs.h"
#include "ops/bev/pillar_scatter/placed_pillars.h"

namespace polyop {

// A canvas is mostly zeros and larger than the caches. Writing zeros first and the pillars afterwards would fetch a
// cache line for each of their values. Instead, it is written in bands of cells whose pillars are known, each line
// once.
inline constexpr int64_t kBandCells = 256,
                         kBandChannels = 32;            // for floats: a tile of 34 KB and two cache lines per pillar
inline constexpr int64_t kBandPitch = kBandCells + 16;  // a power of two would map all rows to the same few lines of L1

// Pillars sorted by image and band; within a band they keep the order of their rows.
struct PillarBands {
  int64_t bands;  // per image
  const int64_t* firsts;
  const PlacedPillar* pillars;

  std::span<const PlacedPillar> Of(int64_t image, int64_t band) const {
    const int64_t b = image * bands + band;
    return {pillars + firsts[b], static_cast<size_t>(firsts[b + 1] - firsts[b])};
  }
};

}  // namespace polyop
#endif  // POLYOP_OPS_BEV_PILLAR_SCATTER_PILLAR_SCATTER_CPU_

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Calls body(c) for `width` channels. For a full group, the compiler knows the number of iterations.
template <class Body>
HWY_INLINE void ForEachChannel(int64_t width, const Body& body) {
  if (HWY_LIKELY(width == kBandChannels)) {
    for (int64_t c = 0; c < kBandChannels; ++c) body(c);
  } else {
    for (int64_t c = 0; c < width; ++c) body(c);
  }
}

// Writes the `cells` cells from `first_cell` on of `width` planes, those of the channels from `channel` on, the first
// of which begins at `plane`. `tile` is null if nothing is streamed; otherwise it must contain zeros and does so
// afterwards.
template <class Word>
void WriteBand(std::span<const PlacedPillar> pillars, const Word* features, int64_t channels, int64_t channel,
               int64_t width, int64_t first_cell, int64_t cells, int64_t plane_cells, Word* plane, Word* tile) {
  Word* const band = plane + first_cell;
  const bool stream = tile != nullptr, in_tile = stream && !pillars.empty();
  if (!in_tile) {
    for (int64_t c = 0; c < width; ++c) FillWithZeros(band + c * plane_cells, cells, stream);
  }
  Word* const to = in_tile ? tile : band;
  const int64_t pitch = in_tile ? kBandPitch : plane_cells;
  for (const PlacedPillar& pillar : pillars) {
    const Word* const row = features + pillar.row * channels + channel;
    ForEachChannel(width, [&](int64_t c) { to[c * pitch + pillar.cell - first_cell] = row[c]; });
  }
  if (!in_tile) return;
  for (int64_t c = 0; c < width; ++c) StreamRun(tile + c * kBandPitch, cells, band + c * plane_cells);
  for (const PlacedPillar& pillar : pillars) {
    ForEachChannel(width, [&](int64_t c) { tile[c * kBandPitch + pillar.cell - first_cell] = 0; });
  }
}

template <class Word>
void WriteCanvas(const Context& context, const Word* features, const PillarBands& bands, const Shape& shape,
                 Word* canvas) {
  const int64_t channels = shape[1], cells = shape[2] * shape[3];
  const int64_t groups = (channels + kBandChannels - 1) / kBandChannels, items = shape[0] * groups * bands.bands;
  const bool stream = ShouldStream(cells * static_cast<int64_t>(sizeof(Word)), shape[0] * channels);
  const double bytes =
      static_cast<double>(std::min(cells, kBandCells) * std::min(channels, kBandChannels)) * sizeof(Word);
  context.ParallelFor(items, GrainFor(0.1 * bytes), [&](int64_t begin, int64_t end) HWY_ATTR {
    alignas(kCacheLine) Word tile[kBandChannels * kBandPitch];
    std::fill_n(tile, stream ? kBandChannels * kBandPitch : 0, Word{0});
    for (int64_t i = begin; i < end; ++i) {
      const int64_t band = i % bands.bands, plane = i / bands.bands;
      const int64_t image = plane / groups, channel = plane % groups * kBandChannels, first = band * kBandCells;
      if (i + 1 < end && band + 1 < bands.bands) {
        for (const PlacedPillar& next : bands.Of(image, band + 1)) {
          __builtin_prefetch(features + next.row * channels + channel);
        }
      }
      WriteBand(bands.Of(image, band), features, channels, channel, std::min(kBandChannels, channels - channel), first,
                std::min(kBandCells, cells - first), cells, canvas + (image * channels + channel) * cells,
                stream ? tile : nullptr);
    }
    if (stream) hwy::FlushStream();
  });
}

template <class T, class I>
Status ScatterPillars(const Context& context, const T* features, const I* coords, int64_t images, int64_t count,
                      const I* num, Tensor<T, 4> canvas) {
  const Shape shape = canvas.shape();
  const int64_t bands = (shape[2] * shape[3] + kBandCells - 1) / kBandCells;
  const Scratch<int64_t> firsts = context.Allocate<int64_t>(shape[0] * bands + 1);
  const Scratch<PlacedPillar> pillars = context.Allocate<PlacedPillar>(images * count);
  if (!firsts || !pillars) return Internal("out of memory: ", images * count, " pillars");
  // Counts the pillars of each band in the next slot. After the sums below, the slot holds the begin of its band ...
  int64_t* const ends = firsts.data() + 1;
  const auto band_of = [&](int64_t image, int64_t cell) { return image * bands + cell / kBandCells; };
  std::fill_n(firsts.data(), shape[0] * bands + 1, int64_t{0});
  POLYOP_RETURN_IF_ERROR(ForEachPillar(coords, images, count, num, shape, [&](int64_t image, PlacedPillar pillar) {
    ++ends[band_of(image, pillar.cell)];
  }));
  int64_t before = 0;
  for (int64_t b = 0; b < shape[0] * bands; ++b) before += std::exchange(ends[b], before);
  // ... and while the band is filled, it advances to the end.
  POLYOP_RETURN_IF_ERROR(ForEachPillar(coords, images, count, num, shape, [&](int64_t image, PlacedPillar pillar) {
    pillars[ends[band_of(image, pillar.cell)]++] = pillar;
  }));
  using Word = WordOf<T>;
  WriteCanvas(context, reinterpret_cast<const Word*>(features), {bands, firsts.data(), pillars.data()}, shape,
              reinterpret_cast<Word*>(canvas.data()));
  return Status::Ok();
}

template <class Types, class T = typename Types::Real, class I = typename Types::Int>
Status PillarScatterCpu(const PillarScatter&, const Context& context, Tensor<const T, 2> features,
                        Tensor<const I, 2> coords, std::optional<Tensor<const I, 1>> num, Tensor<T, 4> canvas) {
  return ScatterPillars(context, features.data(), coords.data(), 1, features.dim(0), num ? num->data() : nullptr,
                        canvas);
}

template <class Types, class T = typename Types::Real, class I = typename Types::Int>
Status PillarScatterOfImages(const PillarScatter&, const Context& context, Tensor<const T, 3> features,
                             Tensor<const I, 3> coords, Tensor<const I, 1> num, Tensor<T, 4> canvas) {
  return ScatterPillars(context, features.data(), coords.data(), features.dim(0), features.dim(1), num.data(), canvas);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(PillarScatter, PillarScatterCpu, F32I32, F32I64, F16I32, F16I64, BF16I32, BF16I64);
POLYOP_CPU_KERNELS(PillarScatter, PillarScatterOfImages, F32I32, F32I64, F16I32, F16I64, BF16I32, BF16I64);
}  // namespace polyop
#endif
