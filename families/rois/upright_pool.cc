#include "families/rois/upright_pool.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "families/rois/upright_pool.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/rois/pool_by_blocks-inl.h"
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The taps of each bin of one axis of one roi: taps[begin[b]] … taps[begin[b + 1]].
struct AxisTaps {
  Tap* taps;
  int32_t* begin;
};

struct Roi {
  RoiAxis y, x;
  AxisTaps rows, columns;
  float scale = 0;    // 1 / samples
  bool four = false;  // every bin has kFour taps on both axes
};

inline double Middle(const RoiAxis& axis, int64_t bins) {
  return axis.start + axis.bin * static_cast<double>(bins) / 2;
}

// Most taps that the bins of an axis can have together.
inline int64_t TapsBound(const RoiAxis& axis, int64_t bins, int64_t extent) {
  int64_t total = 0;
  for (int64_t b = 0; b < bins; ++b) {
    int64_t begin = 0, end = 0;
    axis.Inside(b, extent, &begin, &end);
    total += 2 * (end - begin);
  }
  return std::max(total, bins * 4);  // room to pad
}

// Average: samples of a bin that share a pixel share its tap.
inline void FillMerged(const RoiAxis& axis, int64_t bins, int64_t extent, const AxisTaps& out) {
  int32_t count = 0;
  for (int64_t b = 0; b < bins; ++b) {
    out.begin[b] = count;
    const int32_t first = count;
    const auto add = [&](int32_t index, float weight) {
      if (weight == 0) return;
      for (int32_t t = count;
           t-- > std::max(first, count - 2);) {  // positions are monotonic: only the last two can match
        if (out.taps[t].index != index) continue;
        out.taps[t].weight += weight;
        return;
      }
      out.taps[count++] = {index, weight};
    };
    int64_t begin = 0, end = 0;
    axis.Inside(b, extent, &begin, &end);
    for (int64_t s = begin; s < end; ++s) {
      const LinearTaps taps = RoiTaps(axis.Position(b, s), extent);
      if (!taps.inside) continue;
      add(taps.low, taps.low_weight);
      add(taps.high, taps.high_weight);
    }
  }
  out.begin[bins] = count;
}

// Averages of bins with this many taps an axis (two samples) need no loops of their own.
constexpr int64_t kFour = 4;

// Brings every bin to four taps: the last one comes again, each time with half of the weight that is left. (Weights of
// 0 would make NaN of infinite pixels.) Returns false, and changes nothing, if a bin has no taps or more than four.
inline bool PadToFour(const AxisTaps& axis, int64_t bins) {
  for (int64_t b = 0; b < bins; ++b) {
    const int64_t count = axis.begin[b + 1] - axis.begin[b];
    if (count == 0 || count > kFour) return false;
  }
  for (int64_t b = bins; b-- > 0;) {  // from the end: a bin moves up, if at all
    const int64_t from = axis.begin[b], count = axis.begin[b + 1] - from;
    Tap padded[kFour];
    for (int64_t t = 0; t < kFour; ++t) {
      padded[t] = axis.taps[from + std::min(t, count - 1)];
      if (t >= count) padded[t].weight = padded[t - 1].weight /= 2;
    }
    std::copy_n(padded, kFour, axis.taps + b * kFour);
  }
  for (int64_t b = 0; b <= bins; ++b) axis.begin[b] = static_cast<int32_t>(b * kFour);
  return true;
}

// Maximum: two taps for every sample. A bin with samples outside starts with taps of weight 0, whose value 0
// takes part in the maximum.
inline void FillSamples(const RoiAxis& axis, int64_t bins, int64_t extent, const AxisTaps& out) {
  int32_t count = 0;
  for (int64_t b = 0; b < bins; ++b) {
    out.begin[b] = count;
    int64_t begin = 0, end = 0, inside = 0;
    axis.Inside(b, extent, &begin, &end);
    for (int64_t s = begin; s < end; ++s) {
      const LinearTaps taps = RoiTaps(axis.Position(b, s), extent);
      if (!taps.inside) continue;
      ++inside;
      out.taps[count++] = {taps.low, taps.low_weight};
      out.taps[count++] = {taps.high, taps.high_weight};
    }
    if (inside < axis.samples) out.begin[b] = ~out.begin[b];  // marks that a sample lies outside
  }
  out.begin[bins] = count;
}

// kBlocks blocks that lie `block_stride` elements apart; tile [kBlocks][rows][columns][16].
template <int64_t kBlocks, class Element>
void PoolAverage(const Roi& roi, const Element* block, int64_t block_stride, int64_t width, int64_t rows,
                 int64_t columns, float* tile) {
  const int64_t tile_stride = rows * columns * kBlockChannels;
  for (int64_t by = 0; by < rows; ++by) {
    for (int64_t bx = 0; bx < columns; ++bx) {
      BlockSum sum[kBlocks];
      for (BlockSum& s : sum) s.Fill(0);
      for (int32_t ty = roi.rows.begin[by]; ty < roi.rows.begin[by + 1]; ++ty) {
        const Element* const row = block + roi.rows.taps[ty].index * width * kBlockChannels;
        BlockSum across[kBlocks];
        for (BlockSum& s : across) s.Fill(0);
        for (int32_t tx = roi.columns.begin[bx]; tx < roi.columns.begin[bx + 1]; ++tx) {
          const Tap& tap = roi.columns.taps[tx];
          const Element* const pixel = row + tap.index * kBlockChannels;
          for (int64_t b = 0; b < kBlocks; ++b) across[b].Add(pixel + b * block_stride, tap.weight);
        }
        for (int64_t b = 0; b < kBlocks; ++b) sum[b].Add(across[b], roi.rows.taps[ty].weight);
      }
      for (int64_t b = 0; b < kBlocks; ++b) sum[b].Store(roi.scale, tile + b * tile_stride);
      tile += kBlockChannels;
    }
  }
}

// The same for a roi of four taps.
template <int64_t kBlocks, class Element>
void PoolAverageOfFour(const Roi& roi, const Element* block, int64_t block_stride, int64_t width, int64_t rows,
                       int64_t columns, float* tile) {
  const int64_t tile_stride = rows * columns * kBlockChannels;
  for (int64_t by = 0; by < rows; ++by) {
    const Tap* const y = roi.rows.taps + by * kFour;
    const Element* row[kFour];
    for (int64_t t = 0; t < kFour; ++t) row[t] = block + y[t].index * width * kBlockChannels;
    for (int64_t bx = 0; bx < columns; ++bx) {
      const Tap* const x = roi.columns.taps + bx * kFour;
      for (int64_t b = 0; b < kBlocks; ++b) {
        BlockSum sum;
        sum.Fill(0);
        for (int64_t t = 0; t < kFour; ++t) {
          BlockSum across;
          across.Fill(0);
          for (int64_t u = 0; u < kFour; ++u) {
            across.Add(row[t] + b * block_stride + x[u].index * kBlockChannels, x[u].weight);
          }
          sum.Add(across, y[t].weight);
        }
        sum.Store(roi.scale, tile + b * tile_stride);
      }
      tile += kBlockChannels;
    }
  }
}

// With kCorners each weighted pixel of a sample takes part by itself; one of weight 0 is 0.
template <bool kCorners, class Element>
void PoolMaximum(const Roi& roi, const Element* block, int64_t width, int64_t rows, int64_t columns, float* tile) {
  const auto start = [](int32_t marked) { return marked < 0 ? ~marked : marked; };
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  for (int64_t by = 0; by < rows; ++by) {
    for (int64_t bx = 0; bx < columns; ++bx) {
      const int32_t y_begin = roi.rows.begin[by], x_begin = roi.columns.begin[bx];
      const int32_t y_end = start(roi.rows.begin[by + 1]), x_end = start(roi.columns.begin[bx + 1]);
      const bool any = roi.y.samples > 0 && roi.x.samples > 0;
      BlockSum largest;
      largest.Fill(!any || y_begin < 0 || x_begin < 0 ? 0.0f : kNone);
      for (int32_t ty = start(y_begin); ty < y_end; ty += 2) {
        for (int32_t tx = start(x_begin); tx < x_end; tx += 2) {
          BlockSum sample;
          sample.Fill(0);
          for (int32_t dy = 0; dy < 2; ++dy) {
            const Tap& y = roi.rows.taps[ty + dy];
            for (int32_t dx = 0; dx < 2; ++dx) {
              const Tap& x = roi.columns.taps[tx + dx];
              const float weight = y.weight * x.weight;
              if constexpr (kCorners) sample.Fill(0);
              // A weight of 0 times NaN stays out, as in the reference's single taps.
              if (weight != 0) sample.Add(block + (y.index * width + x.index) * kBlockChannels, weight);
              if constexpr (kCorners) largest.Max(sample);
            }
          }
          if constexpr (!kCorners) largest.Max(sample);
        }
      }
      largest.Store(1.0f, tile);
      for (int64_t c = 0; c < kBlockChannels; ++c) tile[c] = tile[c] == kNone ? 0 : tile[c];
      tile += kBlockChannels;
    }
  }
}

template <class T>
Status PoolUprightRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels, int64_t count,
                       const UprightRois<T>& rois, const RoiPooling& how, T* output) {
  const int64_t rows = how.rows, columns = how.columns, bins = rows * columns;
  if (count * channels * bins == 0) return Status::Ok();
  POLYOP_RETURN_IF_ERROR(CheckLevels(levels));

  // The taps of all rois, once: every block of channels uses them.
  const Scratch<Roi> table = context.Allocate<Roi>(count);
  const Scratch<RoiPlace> order = context.Allocate<RoiPlace>(count);
  if (!table || !order) return Internal("out of memory: ", count, " rois");
  const auto level_at = [&](int64_t r) -> const RoiLevel<T>& { return levels[static_cast<size_t>(rois.Level(r))]; };
  int64_t taps_total = 0;
  for (int64_t r = 0; r < count; ++r) {
    Roi roi;
    const RoiLevel<T>& level = level_at(r);
    float box[4];
    rois.Box(r, box);
    roi.x = RoiAxis::Make(box[0], box[2], level.scale, how.aligned, columns, how.sampling_ratio);
    roi.y = RoiAxis::Make(box[1], box[3], level.scale, how.aligned, rows, how.sampling_ratio);
    const double samples = static_cast<double>(roi.x.samples) * static_cast<double>(roi.y.samples);
    roi.scale = samples > 0 ? static_cast<float>(1 / samples) : 0;
    taps_total += TapsBound(roi.y, rows, level.height) + TapsBound(roi.x, columns, level.width);
    table[r] = roi;
    order[r] = {static_cast<int64_t>(rois.Picture(r)), rois.Level(r),
                PlaceOf(Middle(roi.y, rows), Middle(roi.x, columns)), r};
  }
  std::sort(order.data(), order.data() + count);
  const Scratch<Tap> taps = context.Allocate<Tap>(taps_total);
  const Scratch<int32_t> begins = context.Allocate<int32_t>(count * (rows + columns + 2));
  if (!taps || !begins) return Internal("out of memory: taps of ", count, " rois");
  int64_t tap_at = 0;
  for (int64_t r = 0; r < count; ++r) {
    Roi& roi = table[r];
    int32_t* begin = begins.data() + r * (rows + columns + 2);
    roi.rows = {taps.data() + tap_at, begin};
    tap_at += TapsBound(roi.y, rows, level_at(r).height);
    roi.columns = {taps.data() + tap_at, begin + rows + 1};
    tap_at += TapsBound(roi.x, columns, level_at(r).width);
  }
  context.ParallelFor(count, 64, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      Roi& roi = table[r];
      (how.average ? FillMerged : FillSamples)(roi.y, rows, level_at(r).height, roi.rows);
      (how.average ? FillMerged : FillSamples)(roi.x, columns, level_at(r).width, roi.columns);
      roi.four = how.average && PadToFour(roi.rows, rows) && PadToFour(roi.columns, columns);
    }
  });

  const auto all = [](int64_t, int64_t last) { return last; };
  using Element = BlockElement<T>;
  const auto pool = [&](int64_t i, const Element* pixels, int64_t stride, int64_t together, float* tile) {
    const Roi& roi = table[order[i].roi];
    const int64_t width = levels[static_cast<size_t>(order[i].level)].width;
    if (!how.average) {
      const auto maximum = how.corners ? PoolMaximum<true, Element> : PoolMaximum<false, Element>;
      return maximum(roi, pixels, width, rows, columns, tile);
    }
    const auto four = together == 1 ? PoolAverageOfFour<1, Element> : PoolAverageOfFour<kPooledBlocks, Element>;
    const auto any = together == 1 ? PoolAverage<1, Element> : PoolAverage<kPooledBlocks, Element>;
    (roi.four ? four : any)(roi, pixels, stride, width, rows, columns, tile);
  };
  return PoolByBlocks(context, levels, channels, {order.data(), static_cast<size_t>(count)}, bins, how.average, all,
                      pool, output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_SIMD_TABLES(PoolUpright, PoolUprightRois);

template <class T>
Status PoolRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels, int64_t count,
                const UprightRois<T>& rois, const RoiPooling& how, T* output) {
  return POLYOP_SIMD(PoolUpright, T)(context, levels, channels, count, rois, how, output);
}
POLYOP_FOR_FLOATS(PoolRois);
}  // namespace polyop
#endif
