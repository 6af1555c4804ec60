// SPDX-License-Identifier: Apache-2.0
// Pooling of RoIs on the GPU, from one feature map or the levels of a pyramid.
#pragma once

#include <bit>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/pack.h"
#include "ops/rois/roi_grid.h"
#include "ops/rois/roi_sample.h"

namespace polyop {

/// The levels as kernels need them.
template <class T>
struct RoiPyramid {
  RoiLevel<T> level[TensorList<T, 4>::kMax];
  int64_t images, channels;

  /// Returns whether this is a valid batch index.
  POLYOP_HD bool Has(int64_t image) const { return image >= 0 && image < images; }
  POLYOP_HD const T* Plane(const RoiLevel<T>& from, int64_t image, int64_t channel) const {
    return from.data + (image * channels + channel) * from.height * from.width;
  }
};

namespace roi_pool_internal {

// The taps of one axis of a RoI. They are in shared memory if they fit; else those inside are computed again.
struct Axis {
  static constexpr int kTaps = 768;

  RoiAxis axis;
  int64_t bins, extent;
  LinearTaps* table;
  int64_t capacity = kTaps;

  POLYOP_HD bool kept() const { return axis.samples <= capacity / bins; }
  POLYOP_HD void Fill(int thread, int threads) const {
    if (!kept()) return;
    for (int64_t i = thread; i < bins * axis.samples; i += threads) {
      table[i] = RoiTaps(axis.Position(i / axis.samples, i % axis.samples), extent);
    }
  }
  POLYOP_HD void Range(int64_t bin, int64_t* begin, int64_t* end) const {
    *begin = 0;
    *end = axis.samples;
    if (!kept()) axis.Inside(bin, extent, begin, end);
  }
  POLYOP_HD LinearTaps At(int64_t bin, int64_t sample) const {
    return kept() ? table[bin * axis.samples + sample] : RoiTaps(axis.Position(bin, sample), extent);
  }
};

// Returns the average or the maximum of a bin on one plane.
template <class T>
POLYOP_DEVICE float PoolBin(const Axis& y, const Axis& x, int64_t row, int64_t column, const RoiPooling& how,
                            const T* plane, int64_t width) {
  int64_t y_begin, y_end, x_begin, x_end;
  y.Range(row, &y_begin, &y_end);
  x.Range(column, &x_begin, &x_end);
  // Samples that Range excludes are 0, which must take part in the maximum.
  const bool all = y_end - y_begin == y.axis.samples && x_end - x_begin == x.axis.samples;
  float sum = 0, largest = all ? -INFINITY : 0;
  for (int64_t iy = y_begin; iy < y_end; ++iy) {
    const LinearTaps down = y.At(row, iy);
    float along = 0;  // summing row by row limits rounding errors
    for (int64_t ix = x_begin; ix < x_end; ++ix) {
      const RoiSample sample{down, x.At(column, ix)};
      const float value = how.corners ? sample.LargestCorner(plane, width) : sample.Of(plane, width);
      along += value;
      largest = value > largest ? value : largest;
    }
    sum += along;
  }
  const double samples = static_cast<double>(y.axis.samples) * static_cast<double>(x.axis.samples);
  const float average = samples > 0 ? static_cast<float>(sum / samples) : 0;
  return how.average ? average : largest == -INFINITY ? 0 : largest;
}

// Channels that share a block, of `bins` bins each.
inline int64_t ChannelsOfBlock(int64_t channels, int64_t bins) {
  const int64_t some = std::max<int64_t>(8 * kThreadsPerBlock / bins, 1);
  return std::min(channels, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(some))));
}

// The two pixels of a sample of an axis, in units that the kernel chooses; low < 0: the sample is outside.
struct alignas(16) PixelPair {
  int32_t low, high;
  float low_weight, high_weight;

  /// With `halves`, a pixel that is both of the pair gets half of its weight twice.
  POLYOP_HD static PixelPair Of(const LinearTaps& taps, int64_t unit, bool halves) {
    if (!taps.inside) return {-1, -1, 0, 0};
    const bool single = halves && taps.low == taps.high;
    const auto step = static_cast<int32_t>(unit);
    return {taps.low * step, taps.high * step, single ? 0.5f : taps.low_weight, single ? 0.5f : taps.high_weight};
  }
};

// How a block computes averages: the maximum number of samples of an axis, and of the sums in shared memory.
struct AverageTile {
  int64_t y_samples = 256, x_samples = 256, sums = 3072;

  /// Limits shared memory to what a fixed number of samples requires, because the rest caches pixels.
  static AverageTile Of(const RoiPooling& how, int64_t channels) {
    AverageTile tile;
    if (how.sampling_ratio <= 0) return tile;
    const auto samples = [&](int64_t bins) { return how.sampling_ratio > 256 / bins ? 0 : bins * how.sampling_ratio; };
    tile.y_samples = samples(how.rows);
    tile.x_samples = samples(how.columns);
    const int64_t lanes = 2 * tile.x_samples,
                  at_once = lanes > 0 ? kThreadsPerBlock / std::min<int64_t>(lanes, 256) : 0;
    tile.sums = std::min<int64_t>(std::max<int64_t>(std::min(at_once, channels), 1) * how.rows * lanes, 4096);
    return tile;
  }
  int64_t SharedBytes() const {
    return (y_samples + x_samples) * static_cast<int64_t>(sizeof(PixelPair)) + sums * 4 + 48;
  }
};

// Fills a table of the samples of an axis.
POLYOP_DEVICE inline void FillPairs(const RoiAxis& axis, int64_t bins, int64_t extent, int64_t unit, int thread,
                                    bool halves, PixelPair* table) {
  const auto samples = static_cast<uint32_t>(axis.samples);
  for (uint32_t i = static_cast<uint32_t>(thread); i < static_cast<uint32_t>(bins) * samples; i += kThreadsPerBlock) {
    table[i] = PixelPair::Of(RoiTaps(axis.Position(i / samples, i % samples), extent), unit, halves);
  }
}

// Returns the sum of a column's weighted pixels of the samples [begin, end) of the vertical axis.
template <class T>
POLYOP_DEVICE float SumDown(const PixelPair* y, int32_t begin, int32_t end, const T* column) {
  float sum = 0;
  for (int32_t k = begin; k < end; ++k) {
    const PixelPair pair = y[k];
    if (pair.low < 0) continue;
    sum += ToFloat(column[pair.low]) * pair.low_weight + ToFloat(column[pair.high]) * pair.high_weight;
  }
  return sum;
}

// Sums two samples in each of kRows bins. All pixels are loaded before the first is used. Requires: all are inside.
template <int kRows, class T>
POLYOP_DEVICE void SumTwoDown(const PixelPair* y, const T* column, float weight, int32_t stride, float* to) {
  PixelPair pair[2 * kRows];
  T low[2 * kRows], high[2 * kRows];
  for (int k = 0; k < 2 * kRows; ++k) pair[k] = y[k];
  for (int k = 0; k < 2 * kRows; ++k) {
    low[k] = column[pair[k].low];
    high[k] = column[pair[k].high];
  }
  for (int row = 0; row < kRows; ++row) {
    float sum = 0;
    for (int k = 2 * row; k < 2 * row + 2; ++k) {
      sum += ToFloat(low[k]) * pair[k].low_weight + ToFloat(high[k]) * pair[k].high_weight;
    }
    to[row * stride] = sum * weight;
  }
}

// Sums the samples of the rows' bins down one column of pixels: the sum of bin `row` is at to[row * stride].
template <class T>
POLYOP_DEVICE void SumColumn(const PixelPair* y, bool all_inside, int32_t rows, int32_t samples, const T* column,
                             float weight, int32_t stride, float* to) {
  int32_t row = 0;
  if (all_inside && samples == 2) {
    for (; row + 2 <= rows; row += 2) SumTwoDown<2>(y + 2 * row, column, weight, stride, to + row * stride);
  }
  for (; row < rows; ++row) {
    to[row * stride] = SumDown(y, row * samples, (row + 1) * samples, column) * weight;
  }
}

// Computes averages. First, each thread sums the samples of every bin down a column of pixels of one channel;
// neighbouring threads have neighbouring columns. Then each thread adds the columns of a bin. A box with very many
// samples is pooled bin by bin. Blocks of the same channels are consecutive, so that their planes stay in the cache.
template <class T>
Status AverageRoisCuda(const CudaContext& cuda, const RoiPyramid<T>& pyramid, const UprightRois<T>& rois, int64_t count,
                       const RoiPooling& how, T* output) {
  const int64_t bins = how.rows * how.columns, channels = pyramid.channels;
  const int64_t group = ChannelsOfBlock(channels, bins);
  const AverageTile tile = AverageTile::Of(how, group);
  const Divider by_bins(bins), by_columns(how.columns), by_count(count);
  const int64_t blocks = count * BlocksFor(channels, group);
  return ForBlocks<kThreadsPerBlock, 5>(
      cuda, blocks, kThreadsPerBlock, tile.SharedBytes(), [=] POLYOP_DEVICE(Block& block) {
        int64_t r;
        const int64_t first = by_count.Split(block.index, &r) * group;
        const auto held = static_cast<int32_t>(channels - first < group ? channels - first : group);
        const RoiLevel<T>& level = pyramid.level[rois.Level(r)];
        const int64_t image = rois.Image(r);
        const auto bins_of_roi = static_cast<int32_t>(bins);
        T* const to = output + (r * channels + first) * bins;
        if (!pyramid.Has(image)) {
          block.ForThreads([&](int t) {
            for (int32_t i = t; i < held * bins_of_roi; i += kThreadsPerBlock) to[i] = FromFloat<T>(NAN);
          });
          return;
        }
        float box[4];
        rois.Box(r, box);
        const RoiAxis y = RoiAxis::Make(box[1], box[3], level.scale, how.aligned, how.rows, how.sampling_ratio);
        const RoiAxis x = RoiAxis::Make(box[0], box[2], level.scale, how.aligned, how.columns, how.sampling_ratio);
        const bool kept = y.samples <= tile.y_samples / how.rows && x.samples <= tile.x_samples / how.columns;
        const int64_t sums_of_channel = how.rows * 2 * how.columns * (kept ? x.samples : 0);
        if (!kept || sums_of_channel > tile.sums) {
          const Axis ys{y, how.rows, level.height, nullptr, 0}, xs{x, how.columns, level.width, nullptr, 0};
          block.ForThreads([&](int t) {
            for (int32_t i = t; i < held * bins_of_roi; i += kThreadsPerBlock) {
              int64_t bin, column;
              const int64_t c = first + by_bins.Split(i, &bin), row = by_columns.Split(bin, &column);
              to[i] = FromFloat<T>(PoolBin(ys, xs, row, column, how, pyramid.Plane(level, image, c), level.width));
            }
          });
          return;
        }
        PixelPair* const down = block.Shared<PixelPair>(static_cast<int>(tile.y_samples));
        PixelPair* const across = block.Shared<PixelPair>(static_cast<int>(tile.x_samples));
        float* const sums = block.Shared<float>(static_cast<int>(tile.sums));
        block.ForThreads([&](int t) {
          FillPairs(y, how.rows, level.height, level.width, t, true, down);
          FillPairs(x, how.columns, level.width, 1, t, true, across);
        });
        const auto rows = static_cast<int32_t>(how.rows), y_samples = static_cast<int32_t>(y.samples);
        const auto lanes = static_cast<int32_t>(2 * how.columns * x.samples),
                   of_bin = static_cast<int32_t>(2 * x.samples);
        const int32_t at_once = sums_of_channel == 0 ? held : static_cast<int32_t>(tile.sums / sums_of_channel);
        const float scale = y.samples * x.samples > 0 ? 1 / static_cast<float>(y.samples * x.samples) : 0;
        // Positions ascend or descend.
        const bool all_inside = y_samples > 0 && down[0].low >= 0 && down[rows * y_samples - 1].low >= 0;
        for (int32_t c = 0; c < held; c += at_once) {
          const int32_t some = held - c < at_once ? held - c : at_once;
          block.ForThreads([&](int t) {
            for (int32_t i = t; i < some * lanes; i += kThreadsPerBlock) {
              const auto channel = static_cast<int32_t>(static_cast<uint32_t>(i) / static_cast<uint32_t>(lanes));
              const int32_t lane = i - channel * lanes;
              const PixelPair pair = across[lane / 2];
              const float weight = lane % 2 ? pair.high_weight : pair.low_weight;
              float* const sum = sums + channel * rows * lanes + lane;
              if (pair.low < 0) {
                for (int32_t row = 0; row < rows; ++row) sum[row * lanes] = 0;
                continue;
              }
              const T* const column =
                  pyramid.Plane(level, image, first + c + channel) + (lane % 2 ? pair.high : pair.low);
              SumColumn(down, all_inside, rows, y_samples, column, weight, lanes, sum);
            }
          });
          block.ForThreads([&](int t) {
            for (int32_t i = t; i < some * bins_of_roi; i += kThreadsPerBlock) {
              // Bins in the order of the channels' rows: bin i is the i-th group of lanes.
              const float* const from = sums + i * of_bin;
              float sum = 0;
              if (of_bin == 4) {
                const auto four = *reinterpret_cast<const Pack<float, 4>*>(from);
                sum = (four.of[0] + four.of[1]) + (four.of[2] + four.of[3]);
              } else {
                for (int32_t k = 0; k < of_bin; k += 2) sum += from[k] + from[k + 1];
              }
              to[c * bins_of_roi + i] = FromFloat<T>(sum * scale);
            }
          });
        }
      });
}

}  // namespace roi_pool_internal

/// Pools `count` boxes to output [count, channels, rows, columns]. Each block pools some channels of one RoI. The
/// result is NaN for an invalid batch index.
template <class T>
Status PoolRoisCuda(const CudaContext& cuda, const RoiPyramid<T>& pyramid, const UprightRois<T>& rois, int64_t count,
                    const RoiPooling& how, T* output) {
  using roi_pool_internal::Axis;
  const int64_t bins = how.rows * how.columns, channels = pyramid.channels;
  if (count * channels * bins == 0) return cuda.Check();
  POLYOP_RETURN_IF_ERROR(CheckLevels<T>({pyramid.level, static_cast<size_t>(rois.levels)}));
  if (how.average) return roi_pool_internal::AverageRoisCuda(cuda, pyramid, rois, count, how, output);
  const int64_t group = roi_pool_internal::ChannelsOfBlock(channels, bins);
  const Divider by_bins(bins), by_columns(how.columns), by_count(count);
  constexpr int64_t kShared = 2 * Axis::kTaps * static_cast<int64_t>(sizeof(LinearTaps));
  return ForBlocks(
      cuda, count * BlocksFor(channels, group), kThreadsPerBlock, kShared, [=] POLYOP_DEVICE(Block& block) {
        int64_t r;
        const int64_t first = by_count.Split(block.index, &r) * group;
        const RoiLevel<T>& level = pyramid.level[rois.Level(r)];
        const int64_t image = rois.Image(r);
        float box[4];
        rois.Box(r, box);
        const Axis y{RoiAxis::Make(box[1], box[3], level.scale, how.aligned, how.rows, how.sampling_ratio), how.rows,
                     level.height, block.Shared<LinearTaps>(Axis::kTaps)};
        const Axis x{RoiAxis::Make(box[0], box[2], level.scale, how.aligned, how.columns, how.sampling_ratio),
                     how.columns, level.width, block.Shared<LinearTaps>(Axis::kTaps)};
        block.ForThreads([&](int t) {
          y.Fill(t, kThreadsPerBlock);
          x.Fill(t, kThreadsPerBlock);
        });
        const int64_t held = channels - first < group ? channels - first : group;
        block.ForThreads([&](int t) {
          for (int64_t i = t; i < held * bins; i += kThreadsPerBlock) {
            int64_t bin, column;
            const int64_t c = first + by_bins.Split(i, &bin), row = by_columns.Split(bin, &column);
            output[(r * channels + c) * bins + bin] = FromFloat<T>(
                pyramid.Has(image)
                    ? roi_pool_internal::PoolBin(y, x, row, column, how, pyramid.Plane(level, image, c), level.width)
                    : NAN);
          }
        });
      });
}

/// Returns the average of a bin of a rotated box on one plane of its level.
template <class T>
POLYOP_HD float AverageOfRotatedBin(const RotatedGrid& grid, const RoiLevel<T>& level, const T* plane, int64_t row,
                                    int64_t column) {
  double u_range[2], v_range[2];
  grid.Bounds(level.height, level.width, u_range, v_range);
  int64_t v_begin, v_end, u_begin, u_end;
  grid.v.Inside(row, v_range[0], v_range[1], &v_begin, &v_end);
  grid.u.Inside(column, u_range[0], u_range[1], &u_begin, &u_end);
  float sum = 0;
  for (int64_t iv = v_begin; iv < v_end; ++iv) {
    float along = 0;  // summing row by row limits rounding errors
    for (int64_t iu = u_begin; iu < u_end; ++iu) {
      const double u = grid.u.Position(column, iu), v = grid.v.Position(row, iv);
      const RoiSample sample{RoiTaps(grid.Y(u, v), level.height), RoiTaps(grid.X(u, v), level.width)};
      along += sample.Of(plane, level.width);
    }
    sum += along;
  }
  const double samples = static_cast<double>(grid.u.samples) * static_cast<double>(grid.v.samples);
  return samples > 0 ? static_cast<float>(sum / samples) : 0;
}

namespace roi_pool_internal {

// The pixels of a sample, row by row, and their weights; pixel[0] < 0: the sample is outside.
struct alignas(16) PixelSquare {
  int32_t pixel[4];
  float weight[4];

  POLYOP_HD static PixelSquare Of(double y_at, double x_at, int64_t height, int64_t width) {
    const PixelPair y = PixelPair::Of(RoiTaps(y_at, height), width, true);
    const PixelPair x = PixelPair::Of(RoiTaps(x_at, width), 1, true);
    if (y.low < 0 || x.low < 0) return {{-1, -1, -1, -1}, {0, 0, 0, 0}};
    return {{y.low + x.low, y.low + x.high, y.high + x.low, y.high + x.high},
            {y.low_weight * x.low_weight, y.low_weight * x.high_weight, y.high_weight * x.low_weight,
             y.high_weight * x.high_weight}};
  }
  template <class T>
  POLYOP_DEVICE void Load(const T* plane, T value[4]) const {
    for (int k = 0; k < 4; ++k) value[k] = plane[pixel[k]];
  }
  template <class T>
  POLYOP_DEVICE float Sum(const T value[4]) const {
    return (ToFloat(value[0]) * weight[0] + ToFloat(value[1]) * weight[1]) +
           (ToFloat(value[2]) * weight[2] + ToFloat(value[3]) * weight[3]);
  }
};

}  // namespace roi_pool_internal

/// Like PoolRoisCuda, but for rotated boxes; always averages. A block computes the samples of a RoI once for some of
/// its channels; a box with very many samples is pooled bin by bin.
template <class T>
Status PoolRotatedRoisCuda(const CudaContext& cuda, const RoiPyramid<T>& pyramid, const RotatedRois<T>& rois,
                           int64_t count, const RoiPooling& how, T* output) {
  using roi_pool_internal::PixelSquare;
  const int64_t channels = pyramid.channels, bins = how.rows * how.columns;
  if (count * channels * bins == 0) return cuda.Check();
  POLYOP_RETURN_IF_ERROR(CheckLevels<T>({pyramid.level, static_cast<size_t>(rois.levels)}));
  const int64_t group = roi_pool_internal::ChannelsOfBlock(channels, bins);
  // A fixed number of samples needs only that much shared memory; the rest caches pixels.
  constexpr int64_t kMaxSamples = 512;
  const int64_t ratio = how.sampling_ratio;
  const int64_t capacity = ratio > 0 && ratio < 23 ? std::min(kMaxSamples, bins * ratio * ratio) : kMaxSamples;
  const Divider by_bins(bins), by_columns(how.columns), by_count(count);
  const int64_t blocks = count * BlocksFor(channels, group);
  const int64_t shared = capacity * static_cast<int64_t>(sizeof(PixelSquare)) + 16;
  return ForBlocks<kThreadsPerBlock, 5>(cuda, blocks, kThreadsPerBlock, shared, [=] POLYOP_DEVICE(Block& block) {
    int64_t r;
    const int64_t first = by_count.Split(block.index, &r) * group;
    const auto held = static_cast<int32_t>((channels - first < group ? channels - first : group) * bins);
    const RoiLevel<T>& level = pyramid.level[rois.Level(r)];
    const int64_t image = rois.Image(r);
    T* const to = output + (r * channels + first) * bins;
    if (!pyramid.Has(image)) {
      block.ForThreads([&](int t) {
        for (int32_t i = t; i < held; i += kThreadsPerBlock) to[i] = FromFloat<T>(NAN);
      });
      return;
    }
    const RotatedGrid grid = RotatedGrid::Make(rois.Box(r), level.scale, how);
    const int64_t most = capacity / bins;
    if (grid.u.samples > most || grid.v.samples > most || grid.u.samples * grid.v.samples > most) {
      block.ForThreads([&](int t) {
        for (int32_t i = t; i < held; i += kThreadsPerBlock) {
          int64_t bin, column;
          const int64_t c = first + by_bins.Split(i, &bin), row = by_columns.Split(bin, &column);
          to[i] = FromFloat<T>(AverageOfRotatedBin(grid, level, pyramid.Plane(level, image, c), row, column));
        }
      });
      return;
    }
    const auto across = static_cast<int32_t>(grid.u.samples), samples = across * static_cast<int32_t>(grid.v.samples);
    // Sample s of a bin is at table[s * stride + bin].
    const auto stride = static_cast<int32_t>(bins);
    PixelSquare* const table = block.Shared<PixelSquare>(static_cast<int>(capacity));
    int32_t* const some_outside = block.Shared<int32_t>(1);
    block.ForThreads([&](int t) {
      if (t == 0) *some_outside = 0;
    });
    block.ForThreads([&](int t) {
      for (int32_t i = t; i < samples * stride; i += kThreadsPerBlock) {
        int64_t column;
        const int32_t bin = i / samples, s = i - bin * samples;
        const int64_t row = by_columns.Split(bin, &column);
        const double u = grid.u.Position(column, s % across), v = grid.v.Position(row, s / across);
        const PixelSquare square = PixelSquare::Of(grid.Y(u, v), grid.X(u, v), level.height, level.width);
        table[s * stride + bin] = square;
        if (square.pixel[0] < 0) *some_outside = 1;
      }
    });
    const float scale = samples > 0 ? 1 / static_cast<float>(samples) : 0;
    block.ForThreads([&](int t) {
      const bool all_inside = *some_outside == 0;
      for (int32_t i = t; i < held; i += kThreadsPerBlock) {
        int64_t bin;
        const int64_t c = first + by_bins.Split(i, &bin);
        const T* const plane = pyramid.Plane(level, image, c);
        const PixelSquare* const of_bin = table + bin;
        float sum = 0;
        int32_t s = 0;
        for (; all_inside && s + 2 <= samples; s += 2) {
          const PixelSquare a = of_bin[s * stride], b = of_bin[(s + 1) * stride];
          T of_a[4], of_b[4];
          a.Load(plane, of_a);
          b.Load(plane, of_b);
          sum += a.Sum(of_a) + b.Sum(of_b);
        }
        for (; s < samples; ++s) {
          const PixelSquare a = of_bin[s * stride];
          if (a.pixel[0] < 0) continue;
          T of_a[4];
          a.Load(plane, of_a);
          sum += a.Sum(of_a);
        }
        to[i] = FromFloat<T>(sum * scale);
      }
    });
  });
}

}  // namespace polyop
