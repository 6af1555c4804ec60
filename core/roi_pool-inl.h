// Pooling of axis-aligned regions, over one picture or the levels of a pyramid. Compiled once per instruction
// set; include it from a kernel file.
#if defined(POLYOP_CORE_ROI_POOL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_CORE_ROI_POOL_INL_H_
#undef POLYOP_CORE_ROI_POOL_INL_H_
#else
#define POLYOP_CORE_ROI_POOL_INL_H_
#endif

#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "core/channel_blocks-inl.h"
#include "core/roi_axis.h"
#include "core/simd.h"

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
  int64_t picture = 0;
  int32_t level = 0;
  RoiAxis y, x;
  AxisTaps rows, columns;
  float scale = 0;  // 1 / samples
};

// Most taps that the bins of an axis can have together.
inline int64_t TapsBound(const RoiAxis& axis, int64_t bins, int64_t extent) {
  int64_t total = 0;
  for (int64_t b = 0; b < bins; ++b) {
    int64_t begin = 0, end = 0;
    axis.Inside(b, extent, &begin, &end);
    total += 2 * (end - begin);
  }
  return total;
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

inline void PoolAverage(const Roi& roi, const float* block, int64_t width, int64_t rows, int64_t columns, float* tile) {
  for (int64_t by = 0; by < rows; ++by) {
    for (int64_t bx = 0; bx < columns; ++bx) {
      BlockSum sum;
      sum.Fill(0);
      for (int32_t ty = roi.rows.begin[by]; ty < roi.rows.begin[by + 1]; ++ty) {
        const float* row = block + roi.rows.taps[ty].index * width * kBlockChannels;
        for (int32_t tx = roi.columns.begin[bx]; tx < roi.columns.begin[bx + 1]; ++tx) {
          const Tap& tap = roi.columns.taps[tx];
          sum.Add(row + tap.index * kBlockChannels, roi.rows.taps[ty].weight * tap.weight);
        }
      }
      sum.Store(roi.scale, tile);
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

/// A feature map of shape [N, C, height, width].
template <class T>
struct RoiLevel {
  const T* data;
  int64_t height, width;
  double scale;  // from the boxes' coordinates to pixels of this level
};

struct RoiPooling {
  int64_t rows, columns, sampling_ratio;
  bool aligned, average;
};

/// Copies every level to blocks of channels. `copies` owns the memory, one entry a level.
template <class T>
Status CopyLevels(const Context& context, std::span<const RoiLevel<T>> levels, int64_t batch, int64_t channels,
                  const Scratch<float>& memory, ChannelBlocks* copies) {
  float* at = memory.data();
  for (size_t l = 0; l < levels.size(); ++l) {
    const int64_t pixels = levels[l].height * levels[l].width;
    copies[l] = ToChannelBlocks(context, levels[l].data, batch, channels, pixels, at);
    at += ChannelBlocks::FloatsFor(batch, channels, pixels);
  }
  return Status::Ok();
}

/// Checks that pixels of every level fit 32 bits, and adds up the floats of their copies.
template <class T>
Status MeasureLevels(std::span<const RoiLevel<T>> levels, int64_t batch, int64_t channels, int64_t* floats) {
  *floats = 0;
  for (const RoiLevel<T>& level : levels) {
    if (level.width > 0 && level.height > INT32_MAX / level.width) {
      return InvalidArgument("a feature map of ", level.height, " x ", level.width, " pixels: they must fit 32 bits");
    }
    *floats += ChannelBlocks::FloatsFor(batch, channels, level.height * level.width);
  }
  return Status::Ok();
}

/// Pools `count` boxes (x1, y1, x2, y2 as box(r, float[4])) of picture_of(r), level_of(r) to output
/// [count, channels, rows, columns].
template <class T, class BoxOf, class PictureOf, class LevelOf>
Status PoolRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t batch, int64_t channels,
                int64_t count, const BoxOf& box_of, const PictureOf& picture_of, const LevelOf& level_of,
                const RoiPooling& how, T* output) {
  const int64_t rows = how.rows, columns = how.columns, bins = rows * columns;
  if (count * channels * bins == 0) return Status::Ok();
  int64_t copy_floats = 0;
  POLYOP_RETURN_IF_ERROR(MeasureLevels(levels, batch, channels, &copy_floats));

  // The taps of all rois, once: every block of channels uses them.
  const Scratch<Roi> table = context.Allocate<Roi>(count);
  const Scratch<ChannelBlocks> copies = context.Allocate<ChannelBlocks>(static_cast<int64_t>(levels.size()));
  if (!table || !copies) return Internal("out of memory: ", count, " rois");
  int64_t taps_total = 0;
  for (int64_t r = 0; r < count; ++r) {
    Roi roi;
    roi.picture = picture_of(r);
    roi.level = level_of(r);
    const RoiLevel<T>& level = levels[static_cast<size_t>(roi.level)];
    float box[4];
    box_of(r, box);
    roi.x = RoiAxis::Make(box[0], box[2], level.scale, how.aligned, columns, how.sampling_ratio);
    roi.y = RoiAxis::Make(box[1], box[3], level.scale, how.aligned, rows, how.sampling_ratio);
    const double samples = static_cast<double>(roi.x.samples) * static_cast<double>(roi.y.samples);
    roi.scale = samples > 0 ? static_cast<float>(1 / samples) : 0;
    taps_total += TapsBound(roi.y, rows, level.height) + TapsBound(roi.x, columns, level.width);
    table[r] = roi;
  }
  const Scratch<Tap> taps = context.Allocate<Tap>(taps_total);
  const Scratch<int32_t> begins = context.Allocate<int32_t>(count * (rows + columns + 2));
  const Scratch<float> blocked = context.Allocate<float>(copy_floats);
  const int64_t blocks = ChannelBlocks::BlocksFor(channels), items = blocks * count;
  const int64_t grain = GrainFor(static_cast<double>(bins) * 30);
  const Scratch<float> tiles = context.Allocate<float>(Context::NumTasks(items, grain) * bins * kBlockChannels);
  if (!taps || !begins || !blocked || !tiles) return Internal("out of memory: scratch for ", count, " rois");
  int64_t tap_at = 0;
  for (int64_t r = 0; r < count; ++r) {
    Roi& roi = table[r];
    const RoiLevel<T>& level = levels[static_cast<size_t>(roi.level)];
    int32_t* begin = begins.data() + r * (rows + columns + 2);
    roi.rows = {taps.data() + tap_at, begin};
    tap_at += TapsBound(roi.y, rows, level.height);
    roi.columns = {taps.data() + tap_at, begin + rows + 1};
    tap_at += TapsBound(roi.x, columns, level.width);
  }
  context.ParallelFor(count, 64, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const RoiLevel<T>& level = levels[static_cast<size_t>(table[r].level)];
      (how.average ? FillMerged : FillSamples)(table[r].y, rows, level.height, table[r].rows);
      (how.average ? FillMerged : FillSamples)(table[r].x, columns, level.width, table[r].columns);
    }
  });

  POLYOP_RETURN_IF_ERROR(CopyLevels(context, levels, batch, channels, blocked, copies.data()));
  context.ParallelFor(items, grain, [&](int64_t task, int64_t begin, int64_t end) {
    float* tile = tiles.data() + task * bins * kBlockChannels;
    for (int64_t item = begin; item < end; ++item) {  // block by block, so that a block stays in the cache
      const int64_t block = item / count, r = item % count, first = block * kBlockChannels;
      const float* pixels = copies[table[r].level].Block(table[r].picture, block);
      const int64_t width = levels[static_cast<size_t>(table[r].level)].width;
      (how.average ? PoolAverage : PoolMaximum)(table[r], pixels, width, rows, columns, tile);
      WriteChannels(tile, bins, std::min(kBlockChannels, channels - first), bins,
                    output + (r * channels + first) * bins);
    }
  });
  return Status::Ok();
}

/// A box turned by an angle: its centre and extents in the boxes' coordinates.
struct RotatedBox {
  double x, y, width, height, angle;
};

// Where the samples of a rotated box lie: a grid in the box's own axes, u along its width and v along its height.
struct RotatedGrid {
  double centre_x, centre_y, cosine, sine;
  RoiAxis u, v;

  static RotatedGrid Make(const RotatedBox& box, double scale, const RoiPooling& how) {
    const double shift = how.aligned ? 0.5 : 0.0;
    RotatedGrid grid{box.x * scale - shift, box.y * scale - shift, std::cos(box.angle), std::sin(box.angle), {}, {}};
    // Extents are scaled here; an axis of its own centre has neither scale nor shift.
    const auto axis = [&](double extent, int64_t bins) {
      double length = extent * scale;
      if (!how.aligned) length = std::max(length, 1.0);
      return RoiAxis::Between(-length / 2, length / 2, 0.0, bins, how.sampling_ratio);
    };
    grid.u = axis(box.width, how.columns);
    grid.v = axis(box.height, how.rows);
    const bool finite = std::isfinite(grid.centre_x) && std::isfinite(grid.centre_y) && std::isfinite(grid.cosine);
    if (!finite) grid.u.samples = grid.v.samples = 0;
    return grid;
  }
  double X(double u_at, double v_at) const { return v_at * sine + u_at * cosine + centre_x; }
  double Y(double u_at, double v_at) const { return v_at * cosine - u_at * sine + centre_y; }

  // The picture's corners, seen along the box's axes: samples beyond them are outside.
  void Bounds(int64_t height, int64_t width, double u_range[2], double v_range[2]) const {
    u_range[0] = v_range[0] = std::numeric_limits<double>::infinity();
    u_range[1] = v_range[1] = -std::numeric_limits<double>::infinity();
    for (const double x : {-1.0, static_cast<double>(width)}) {
      for (const double y : {-1.0, static_cast<double>(height)}) {
        const double u_at = (x - centre_x) * cosine - (y - centre_y) * sine,
                     v_at = (x - centre_x) * sine + (y - centre_y) * cosine;
        u_range[0] = std::min(u_range[0], u_at);
        u_range[1] = std::max(u_range[1], u_at);
        v_range[0] = std::min(v_range[0], v_at);
        v_range[1] = std::max(v_range[1], v_at);
      }
    }
  }
};

/// As PoolRois, for boxes that box_of(r) gives as RotatedBox; the average of bilinear samples.
template <class T, class BoxOf, class PictureOf, class LevelOf>
Status PoolRotatedRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t batch, int64_t channels,
                       int64_t count, const BoxOf& box_of, const PictureOf& picture_of, const LevelOf& level_of,
                       const RoiPooling& how, T* output) {
  const int64_t bins = how.rows * how.columns, blocks = ChannelBlocks::BlocksFor(channels);
  if (count * channels * bins == 0) return Status::Ok();
  int64_t copy_floats = 0;
  POLYOP_RETURN_IF_ERROR(MeasureLevels(levels, batch, channels, &copy_floats));
  const int64_t grain = GrainFor(static_cast<double>(bins * blocks) * 30);
  const int64_t tile_floats = blocks * bins * kBlockChannels;
  const Scratch<ChannelBlocks> copies = context.Allocate<ChannelBlocks>(static_cast<int64_t>(levels.size()));
  const Scratch<float> blocked = context.Allocate<float>(copy_floats);
  const Scratch<float> tiles = context.Allocate<float>(Context::NumTasks(count, grain) * tile_floats);
  if (!copies || !blocked || !tiles) return Internal("out of memory: scratch for ", count, " rois");
  POLYOP_RETURN_IF_ERROR(CopyLevels(context, levels, batch, channels, blocked, copies.data()));

  context.ParallelFor(count, grain, [&](int64_t task, int64_t begin, int64_t end) {
    constexpr int kChunk = 64;  // samples whose taps are found before the channels are visited
    float* const tile = tiles.data() + task * tile_floats;
    Tap taps[4 * kChunk];
    for (int64_t r = begin; r < end; ++r) {
      const int32_t level_index = level_of(r);
      const RoiLevel<T>& level = levels[static_cast<size_t>(level_index)];
      const ChannelBlocks& copy = copies[level_index];
      const RotatedGrid grid = RotatedGrid::Make(box_of(r), level.scale, how);
      const double samples = static_cast<double>(grid.u.samples) * static_cast<double>(grid.v.samples);
      const float scale = samples > 0 ? static_cast<float>(1 / samples) : 0;
      double u_range[2], v_range[2];
      grid.Bounds(level.height, level.width, u_range, v_range);
      std::fill_n(tile, tile_floats, 0.0f);
      for (int64_t bin = 0; bin < bins; ++bin) {
        int num_taps = 0;
        const auto flush = [&] {
          for (int64_t b = 0; b < blocks; ++b) {
            float* const to = tile + (b * bins + bin) * kBlockChannels;
            BlockSum sum;
            sum.Load(to);
            const float* block = copy.Block(picture_of(r), b);
            for (int t = 0; t < num_taps; ++t)
              sum.Add(block + static_cast<int64_t>(taps[t].index) * kBlockChannels, taps[t].weight);
            sum.Store(1.0f, to);
          }
          num_taps = 0;
        };
        int64_t v_begin = 0, v_end = 0, u_begin = 0, u_end = 0;
        grid.v.Inside(bin / how.columns, v_range[0], v_range[1], &v_begin, &v_end);
        grid.u.Inside(bin % how.columns, u_range[0], u_range[1], &u_begin, &u_end);
        for (int64_t iv = v_begin; iv < v_end; ++iv) {
          for (int64_t iu = u_begin; iu < u_end; ++iu) {
            const double u_at = grid.u.Position(bin % how.columns, iu), v_at = grid.v.Position(bin / how.columns, iv);
            const LinearTaps y = RoiTaps(grid.Y(u_at, v_at), level.height),
                             x = RoiTaps(grid.X(u_at, v_at), level.width);
            if (!y.inside || !x.inside) continue;
            const auto width = static_cast<int32_t>(level.width);
            for (const auto& [row, row_weight] : {std::pair{y.low, y.low_weight}, {y.high, y.high_weight}}) {
              if (row_weight != 0 && x.low_weight != 0)
                taps[num_taps++] = {row * width + x.low, row_weight * x.low_weight * scale};
              if (row_weight != 0 && x.high_weight != 0)
                taps[num_taps++] = {row * width + x.high, row_weight * x.high_weight * scale};
            }
            if (num_taps > 4 * (kChunk - 1)) flush();
          }
        }
        flush();
      }
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t first = b * kBlockChannels;
        WriteChannels(tile + b * bins * kBlockChannels, bins, std::min(kBlockChannels, channels - first), bins,
                      output + (r * channels + first) * bins);
      }
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
