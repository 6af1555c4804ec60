// Pooling of RoIs on the GPU, from one feature map or the levels of a pyramid.
#pragma once

#include "families/rois/roi_grid.h"
#include "families/rois/roi_sample.h"
#include "kernels/cuda/cuda.h"

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

}  // namespace roi_pool_internal

/// Pools `count` boxes to output [count, channels, rows, columns]. Each block pools some channels of one RoI: its
/// threads compute the taps of both axes, then each pools bins. The result is NaN for an invalid batch index.
template <class T>
Status PoolRoisCuda(const CudaContext& cuda, const RoiPyramid<T>& pyramid, const UprightRois<T>& rois, int64_t count,
                    const RoiPooling& how, T* output) {
  using roi_pool_internal::Axis;
  const int64_t bins = how.rows * how.columns, channels = pyramid.channels;
  if (count * channels * bins == 0) return cuda.Check();
  POLYOP_RETURN_IF_ERROR(CheckLevels<T>({pyramid.level, static_cast<size_t>(rois.levels)}));
  const int64_t group = std::min(channels, BlocksFor(8 * kThreadsPerBlock, bins)), parts = BlocksFor(channels, group);
  const Divider by_bins(bins), by_columns(how.columns), by_parts(parts);
  constexpr int64_t kShared = 2 * Axis::kTaps * static_cast<int64_t>(sizeof(LinearTaps));
  return ForBlocks(cuda, count * parts, kThreadsPerBlock, kShared, [=] POLYOP_DEVICE(Block& block) {
    int64_t part;
    const int64_t r = by_parts.Split(block.index, &part);
    const RoiLevel<T>& level = pyramid.level[rois.Level(r)];
    const int64_t image = rois.Image(r);
    float box[4];
    rois.Box(r, box);
    const Axis y{RoiAxis::Make(box[1], box[3], level.scale, how.aligned, how.rows, how.sampling_ratio), how.rows,
                 level.height, block.Shared<LinearTaps>(Axis::kTaps)};
    const Axis x{RoiAxis::Make(box[0], box[2], level.scale, how.aligned, how.columns, how.sampling_ratio), how.columns,
                 level.width, block.Shared<LinearTaps>(Axis::kTaps)};
    block.ForThreads([&](int t) {
      y.Fill(t, kThreadsPerBlock);
      x.Fill(t, kThreadsPerBlock);
    });
    const int64_t first = part * group, held = channels - first < group ? channels - first : group;
    const double samples = static_cast<double>(y.axis.samples) * static_cast<double>(x.axis.samples);
    block.ForThreads([&](int t) {
      for (int64_t i = t; i < held * bins; i += kThreadsPerBlock) {
        int64_t bin, column, y_begin, y_end, x_begin, x_end;
        const int64_t c = first + by_bins.Split(i, &bin), row = by_columns.Split(bin, &column);
        T* const to = output + (r * channels + c) * bins + bin;
        if (!pyramid.Has(image)) {
          *to = FromFloat<T>(NAN);
          continue;
        }
        y.Range(row, &y_begin, &y_end);
        x.Range(column, &x_begin, &x_end);
        const T* const plane = pyramid.Plane(level, image, c);
        // Samples that Range excludes are 0, which must take part in the maximum.
        const bool all = y_end - y_begin == y.axis.samples && x_end - x_begin == x.axis.samples;
        float sum = 0, largest = all ? -INFINITY : 0;
        for (int64_t iy = y_begin; iy < y_end; ++iy) {
          const LinearTaps down = y.At(row, iy);
          float along = 0;  // summing row by row limits rounding errors
          for (int64_t ix = x_begin; ix < x_end; ++ix) {
            const RoiSample sample{down, x.At(column, ix)};
            const float value = how.corners ? sample.LargestCorner(plane, level.width) : sample.Of(plane, level.width);
            along += value;
            largest = value > largest ? value : largest;
          }
          sum += along;
        }
        const float average = samples > 0 ? static_cast<float>(sum / samples) : 0;
        *to = FromFloat<T>(how.average ? average : largest == -INFINITY ? 0 : largest);
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

/// Like PoolRoisCuda, but for rotated boxes; always averages. Each thread pools a bin of one channel.
template <class T>
Status PoolRotatedRoisCuda(const CudaContext& cuda, const RoiPyramid<T>& pyramid, const RotatedRois<T>& rois,
                           int64_t count, const RoiPooling& how, T* output) {
  const int64_t channels = pyramid.channels;
  if (count * channels == 0) return cuda.Check();
  POLYOP_RETURN_IF_ERROR(CheckLevels<T>({pyramid.level, static_cast<size_t>(rois.levels)}));
  const Divider by_rows(how.rows), by_columns(how.columns), by_channels(channels);
  return ForEach(cuda, count * channels * how.rows * how.columns, [=] POLYOP_DEVICE(int64_t i) {
    int64_t column, row, c;
    const int64_t r = by_channels.Split(by_rows.Split(by_columns.Split(i, &column), &row), &c);
    const RoiLevel<T>& level = pyramid.level[rois.Level(r)];
    const int64_t image = rois.Image(r);
    if (!pyramid.Has(image)) {
      output[i] = FromFloat<T>(NAN);
      return;
    }
    const RotatedGrid grid = RotatedGrid::Make(rois.Box(r), level.scale, how);
    output[i] = FromFloat<T>(AverageOfRotatedBin(grid, level, pyramid.Plane(level, image, c), row, column));
  });
}

}  // namespace polyop
