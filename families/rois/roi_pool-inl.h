// Pooling of axis-aligned regions, over one picture or the levels of a pyramid. Compiled once per instruction
// set; include it from a kernel file.
#if defined(POLYOP_FAMILIES_ROIS_ROI_POOL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_FAMILIES_ROIS_ROI_POOL_INL_H_
#undef POLYOP_FAMILIES_ROIS_ROI_POOL_INL_H_
#else
#define POLYOP_FAMILIES_ROIS_ROI_POOL_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "families/rois/roi_grid.h"
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

struct Tap {
  int32_t index;
  float weight;
};

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

// Which cell of 16 pixels lies there.
inline uint32_t CellOf(double pixel) {
  const double cell = pixel / 16;
  return cell > 0 ? static_cast<uint32_t>(std::min(cell, 65535.0)) : 0;  // NaN: 0
}

// Morton's order of the cells: places that follow each other are near in the picture.
inline uint64_t PlaceOf(double y, double x) {
  const uint32_t row = CellOf(y), column = CellOf(x);
  uint64_t place = 0;
  for (int bit = 0; bit < 16; ++bit) {
    place |= uint64_t{row >> bit & 1} << (2 * bit + 1) | uint64_t{column >> bit & 1} << (2 * bit);
  }
  return place;
}

// Where a roi is pooled. Sorted, neighbours follow each other, and read the same part of the cache.
struct RoiPlace {
  int64_t picture;
  int32_t level;
  uint64_t place;
  int64_t roi;

  bool SamePicture(const RoiPlace& other) const { return picture == other.picture && level == other.level; }
  auto operator<=>(const RoiPlace&) const = default;
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

// Blocks whose averages are summed at a time, so that finding a tap is worth more: as registers allow.
constexpr int64_t kPooledBlocks = kBlockVectors == 1 ? 4 : kBlockVectors == 2 ? 2 : 1;

// Floats of blocks that are pooled together: they stay in L2, or one after the other is faster.
constexpr int64_t kPooledTogether = 1 << 18;

// kBlocks blocks that lie `block_stride` floats apart; tile [kBlocks][rows][columns][16].
template <int64_t kBlocks>
void PoolAverage(const Roi& roi, const float* block, int64_t block_stride, int64_t width, int64_t rows, int64_t columns,
                 float* tile) {
  const int64_t tile_stride = rows * columns * kBlockChannels;
  for (int64_t by = 0; by < rows; ++by) {
    for (int64_t bx = 0; bx < columns; ++bx) {
      BlockSum sum[kBlocks];
      for (BlockSum& s : sum) s.Fill(0);
      for (int32_t ty = roi.rows.begin[by]; ty < roi.rows.begin[by + 1]; ++ty) {
        const float* const row = block + roi.rows.taps[ty].index * width * kBlockChannels;
        BlockSum across[kBlocks];
        for (BlockSum& s : across) s.Fill(0);
        for (int32_t tx = roi.columns.begin[bx]; tx < roi.columns.begin[bx + 1]; ++tx) {
          const Tap& tap = roi.columns.taps[tx];
          const float* const pixel = row + tap.index * kBlockChannels;
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
template <int64_t kBlocks>
void PoolAverageOfFour(const Roi& roi, const float* block, int64_t block_stride, int64_t width, int64_t rows,
                       int64_t columns, float* tile) {
  const int64_t tile_stride = rows * columns * kBlockChannels;
  for (int64_t by = 0; by < rows; ++by) {
    const Tap* const y = roi.rows.taps + by * kFour;
    const float* row[kFour];
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

inline void PoolMaximum(const Roi& roi, const float* block, int64_t width, int64_t rows, int64_t columns, float* tile) {
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
              if (y.weight * x.weight == 0) continue;  // so that 0 * NaN stays out, as in the reference's single taps
              sample.Add(block + (y.index * width + x.index) * kBlockChannels, y.weight * x.weight);
            }
          }
          largest.Max(sample);
        }
      }
      largest.Store(1.0f, tile);
      for (int64_t c = 0; c < kBlockChannels; ++c) tile[c] = tile[c] == kNone ? 0 : tile[c];
      tile += kBlockChannels;
    }
  }
}

// Writes the bins of up to 16 channels of a roi, one piece of the output. A piece that is streamed past the caches is
// made in `spare` first, which has room for it.
template <class T>
void WriteRoi(const float* tile, float* spare, int64_t bins, int64_t channels, bool stream, T* to) {
  T* const made = stream ? reinterpret_cast<T*>(spare) : to;
  WriteChannels(tile, bins, channels, bins, made);
  if (stream) CopyBytes(made, to, channels * bins * static_cast<int64_t>(sizeof(T)), true);
}

// How many blocks of channels of a picture are copied and pooled at a time: what stays in a cache that cores share,
// and is work enough for them.
inline int64_t BlocksAtOnce(int64_t blocks, int64_t pixels) {
  constexpr int64_t kFloats = 4 << 20;
  const int64_t units = kFloats / std::max<int64_t>(pixels * kBlockChannels, 1) / kPooledBlocks;
  return std::min(blocks, std::max<int64_t>(units, 1) * kPooledBlocks);
}

/// The rois of one picture of one level after the other. Blocks of its channels are copied, then pooled while the
/// cache holds them, all rois from one block before the next one:
///  - prepare(first, last) makes the rois order[first] … ready, and returns up to which it did;
///  - pool(i, blocks, block_stride, blocks_together, tile) pools roi order[i], from 1 or kPooledBlocks blocks, to
///    tile [blocks][bins][16].
/// The output is [count, channels, bins].
template <class T, class Prepare, class Pool>
Status PoolByBlocks(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels,
                    std::span<const RoiPlace> order, int64_t bins, bool together, const Prepare& prepare,
                    const Pool& pool, T* output) {
  const int64_t count = static_cast<int64_t>(order.size()), blocks = ChannelBlocks::BlocksFor(channels);
  const int64_t grain = GrainFor(static_cast<double>(bins) * 30);           // rois of one block
  const int64_t tasks = std::min(Context::kMaxTasks, count * blocks);       // at most
  const int64_t tile_floats = (kPooledBlocks + 1) * bins * kBlockChannels;  // one more to transpose into
  const bool stream = ShouldStream(output, bins * kBlockChannels * sizeof(T), count * channels / kBlockChannels);
  int64_t copied = 0;
  for (const RoiLevel<T>& level : levels) {
    const int64_t pixels = level.height * level.width;
    copied = std::max(copied, BlocksAtOnce(blocks, pixels) * pixels * kBlockChannels);
  }
  const Scratch<float> copy = context.Allocate<float>(copied);
  const Scratch<float> tiles = context.Allocate<float>(tasks * tile_floats);
  if (!copy || !tiles) return Internal("out of memory: scratch for ", count, " rois");

  for (int64_t run = 0, run_end = 0; run < count; run = run_end) {
    while (run_end < count && order[run_end].SamePicture(order[run])) ++run_end;
    const RoiLevel<T>& level = levels[static_cast<size_t>(order[run].level)];
    const int64_t pixels = level.height * level.width, stride = pixels * kBlockChannels;
    const int64_t at_once = BlocksAtOnce(blocks, pixels);
    const int64_t unit = together && stride * kPooledBlocks <= kPooledTogether ? kPooledBlocks : 1;
    for (int64_t start = 0; start < blocks; start += at_once) {
      const int64_t some = std::min(at_once, blocks - start), units = (some + unit - 1) / unit;
      ToChannelBlocks(context, level.data + order[run].picture * channels * pixels, 1, channels, pixels, copy.data(),
                      start, some);
      for (int64_t first = run, last = run; first < run_end; first = last) {
        last = prepare(first, run_end);
        const int64_t rois = last - first;
        context.ParallelFor(
            units * rois, std::max<int64_t>(grain / unit, 1), [&](int64_t task, int64_t begin, int64_t end) {
              float* const tile = tiles.data() + task * tile_floats;
              for (int64_t item = begin; item < end; ++item) {
                const int64_t i = first + item % rois, block = item / rois * unit;
                const int64_t now = std::min(unit, some - block), step = now == unit ? unit : 1;
                for (int64_t b = 0; b < now; b += step) {
                  pool(i, copy.data() + (block + b) * stride, stride, step, tile);
                  for (int64_t k = 0; k < step; ++k) {
                    const int64_t channel = (start + block + b + k) * kBlockChannels;
                    WriteRoi(tile + k * bins * kBlockChannels, tile + kPooledBlocks * bins * kBlockChannels, bins,
                             std::min(kBlockChannels, channels - channel), stream,
                             output + (order[i].roi * channels + channel) * bins);
                  }
                }
              }
            });
      }
    }
  }
  return Status::Ok();
}

/// Pools `count` boxes to output [count, channels, rows, columns]. Their pictures are checked.
template <class T>
Status PoolRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels, int64_t count,
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
  const auto pool = [&](int64_t i, const float* pixels, int64_t stride, int64_t together, float* tile) {
    const Roi& roi = table[order[i].roi];
    const int64_t width = levels[static_cast<size_t>(order[i].level)].width;
    if (!how.average) return PoolMaximum(roi, pixels, width, rows, columns, tile);
    const auto average = together == 1 ? (roi.four ? PoolAverageOfFour<1> : PoolAverage<1>)
                                       : (roi.four ? PoolAverageOfFour<kPooledBlocks> : PoolAverage<kPooledBlocks>);
    average(roi, pixels, stride, width, rows, columns, tile);
  };
  return PoolByBlocks(context, levels, channels, {order.data(), static_cast<size_t>(count)}, bins, how.average, all,
                      pool, output);
}

// A rotated roi on its level: its grid and the part of it that lies inside.
struct RotatedRoi {
  TurnedGrid grid;
  double u_range[2], v_range[2];
  int64_t height, width, columns;
  float scale;  // 1 / samples of a bin

  static RotatedRoi Make(const TurnedBox& box, int64_t height, int64_t width, double scale, const RoiPooling& how) {
    RotatedRoi roi{TurnedGrid::Make(box, scale, how), {}, {}, height, width, how.columns, 0};
    const double samples = static_cast<double>(roi.grid.u.samples) * static_cast<double>(roi.grid.v.samples);
    roi.scale = samples > 0 ? static_cast<float>(1 / samples) : 0;
    roi.grid.Bounds(height, width, roi.u_range, roi.v_range);
    return roi;
  }
  /// Most taps that a bin can have.
  double TapsBound() const { return 4 * static_cast<double>(grid.u.samples) * static_cast<double>(grid.v.samples); }

  /// Calls add(tap) for every pixel of every sample of a bin.
  template <class Add>
  void ForEachTap(int64_t bin, const Add& add) const {
    int64_t v_begin = 0, v_end = 0, u_begin = 0, u_end = 0;
    grid.v.Inside(bin / columns, v_range[0], v_range[1], &v_begin, &v_end);
    grid.u.Inside(bin % columns, u_range[0], u_range[1], &u_begin, &u_end);
    for (int64_t iv = v_begin; iv < v_end; ++iv) {
      for (int64_t iu = u_begin; iu < u_end; ++iu) {
        const double u_at = grid.u.Position(bin % columns, iu), v_at = grid.v.Position(bin / columns, iv);
        const LinearTaps y = RoiTaps(grid.Y(u_at, v_at), height), x = RoiTaps(grid.X(u_at, v_at), width);
        if (!y.inside || !x.inside) continue;
        for (const auto& [row, row_weight] : {std::pair{y.low, y.low_weight}, {y.high, y.high_weight}}) {
          const int32_t first = row * static_cast<int32_t>(width);
          if (row_weight != 0 && x.low_weight != 0) add(Tap{first + x.low, row_weight * x.low_weight * scale});
          if (row_weight != 0 && x.high_weight != 0) add(Tap{first + x.high, row_weight * x.high_weight * scale});
        }
      }
    }
  }
};

// The taps of rotated rois that are kept at a time, so that all blocks use them. A roi of more finds them anew for
// each block.
constexpr int64_t kRotatedTaps = 4 << 20;

// Sums the taps of a roi's bins, of which bin b's end before ends[b], in kBlocks blocks.
template <int64_t kBlocks>
void PoolRotated(const Tap* taps, const int32_t* ends, int64_t bins, const float* block, int64_t block_stride,
                 float* tile) {
  const Tap* tap = taps;
  for (int64_t bin = 0; bin < bins; ++bin) {
    BlockSum sums[kBlocks];
    for (BlockSum& sum : sums) sum.Fill(0);
    for (const Tap* const end = taps + ends[bin]; tap < end; ++tap) {
      const float* const pixel = block + static_cast<int64_t>(tap->index) * kBlockChannels;
      for (int64_t b = 0; b < kBlocks; ++b) sums[b].Add(pixel + b * block_stride, tap->weight);
    }
    for (int64_t b = 0; b < kBlocks; ++b) sums[b].Store(1.0f, tile + (b * bins + bin) * kBlockChannels);
  }
}

inline void PoolRotated(const RotatedRoi& roi, int64_t bins, const float* block, float* tile) {
  for (int64_t bin = 0; bin < bins; ++bin) {
    BlockSum sum;
    sum.Fill(0);
    roi.ForEachTap(bin, [&](const Tap& tap) HWY_ATTR {
      sum.Add(block + static_cast<int64_t>(tap.index) * kBlockChannels, tap.weight);
    });
    sum.Store(1.0f, tile + bin * kBlockChannels);
  }
}

/// As PoolRois, for turned boxes; the average of bilinear samples.
template <class T>
Status PoolRotatedRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels, int64_t count,
                       const TurnedRois<T>& rois, const RoiPooling& how, T* output) {
  const int64_t bins = how.rows * how.columns;
  if (count * channels * bins == 0) return Status::Ok();
  POLYOP_RETURN_IF_ERROR(CheckLevels(levels));
  const Scratch<RoiPlace> order = context.Allocate<RoiPlace>(count);
  if (!order) return Internal("out of memory: ", count, " rois");
  const auto roi_of = [&](int64_t r) {
    const RoiLevel<T>& level = levels[static_cast<size_t>(rois.Level(r))];
    return RotatedRoi::Make(rois.Box(r), level.height, level.width, level.scale, how);
  };
  const auto room_for = [&](int64_t r) {  // in taps, at most kRotatedTaps + 1
    const double bound = roi_of(r).TapsBound() * static_cast<double>(bins);
    return static_cast<int64_t>(std::min(bound, static_cast<double>(kRotatedTaps + 1)));
  };
  int64_t room = 0;
  for (int64_t r = 0; r < count; ++r) {
    const TurnedBox box = rois.Box(r);
    const double scale = levels[static_cast<size_t>(rois.Level(r))].scale;
    order[r] = {static_cast<int64_t>(rois.Picture(r)), rois.Level(r), PlaceOf(box.y * scale, box.x * scale), r};
    room = std::min(kRotatedTaps, room + room_for(r));
  }
  std::sort(order.data(), order.data() + count);
  const Scratch<Tap> taps = context.Allocate<Tap>(room);
  const Scratch<int32_t> ends = context.Allocate<int32_t>(count * bins);
  const Scratch<int64_t> starts = context.Allocate<int64_t>(count);
  if (!taps || !ends || !starts) return Internal("out of memory: taps of ", count, " rois");

  // As many rois as there is room for, unless they are there from the blocks before.
  int64_t ready_first = 0, ready_last = 0;
  const auto prepare = [&](int64_t first, int64_t last) {
    if (first == ready_first && ready_last > first) return ready_last;
    int64_t used = 0, stop = first;
    for (; stop < last; ++stop) {
      const int64_t needed = room_for(order[stop].roi);
      const bool alone = needed > kRotatedTaps;  // -1: has no place
      if (!alone && used + needed > room) break;
      starts[stop] = alone ? -1 : used;
      used += alone ? 0 : needed;
    }
    context.ParallelFor(stop - first, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = first + begin; i < first + end; ++i) {
        if (starts[i] < 0) continue;
        const RotatedRoi roi = roi_of(order[i].roi);
        Tap* const to = taps.data() + starts[i];
        int32_t found = 0;
        for (int64_t bin = 0; bin < bins; ++bin) {
          roi.ForEachTap(bin, [&](const Tap& tap) { to[found++] = tap; });
          ends[i * bins + bin] = found;
        }
      }
    });
    ready_first = first;
    return ready_last = stop;
  };
  const auto pool = [&](int64_t i, const float* pixels, int64_t stride, int64_t together, float* tile) {
    if (starts[i] < 0) {
      for (int64_t b = 0; b < together; ++b) {
        PoolRotated(roi_of(order[i].roi), bins, pixels + b * stride, tile + b * bins * kBlockChannels);
      }
      return;
    }
    (together == 1 ? PoolRotated<1> : PoolRotated<kPooledBlocks>)(taps.data() + starts[i], ends.data() + i * bins, bins,
                                                                  pixels, stride, tile);
  };
  return PoolByBlocks(context, levels, channels, {order.data(), static_cast<size_t>(count)}, bins, true, prepare, pool,
                      output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
