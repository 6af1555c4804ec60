// SPDX-License-Identifier: Apache-2.0
// Pooling by RoIAlign's rule in double precision, sample by sample: for reference kernels only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/tensor.h"
#include "ops/rois/roi_pyramid_rule.h"
#include "ops/sampling/reference_sampling.h"

namespace polyop::reference {

/// A box on a feature map. Its corner is at (left, top) in its own axes, which are rotated by `angle` about (x, y).
struct PooledBox {
  double x, y, angle, left, top, width, height;
  bool finite;  // if false, it has no samples

  static PooledBox Upright(double x1, double y1, double x2, double y2, double scale, bool aligned) {
    const double shift = aligned ? 0.5 : 0;
    return {x1 * scale - shift,
            y1 * scale - shift,
            0,
            0,
            0,
            Extent((x2 - x1) * scale, aligned),
            Extent((y2 - y1) * scale, aligned),
            std::isfinite(x1) && std::isfinite(y1) && std::isfinite(x2) && std::isfinite(y2)};
  }
  static PooledBox Rotated(double x, double y, double width, double height, double angle, double scale, bool aligned) {
    const double shift = aligned ? 0.5 : 0, w = Extent(width * scale, aligned), h = Extent(height * scale, aligned);
    const bool finite = std::isfinite(x) && std::isfinite(y) && std::isfinite(width) && std::isfinite(height);
    return {x * scale - shift, y * scale - shift, angle, -w / 2, -h / 2, w, h, finite && std::isfinite(angle)};
  }

 private:
  static double Extent(double pixels, bool aligned) { return aligned ? pixels : std::fmax(pixels, 1); }
};

/// The numbers of bins, and of samples per bin and axis; 0 or less: one sample per pixel.
struct PooledBins {
  int64_t rows, columns, samples;
  bool average;          // average or maximum
  bool corners = false;  // maximum of the samples' four weighted pixels instead of the samples
};

/// Returns the largest of a sample's four weighted pixels, ignoring NaN. A pixel with weight 0 counts as 0.
inline double LargestCorner(const double* plane, int64_t height, int64_t width, double y, double x) {
  const bool inside = y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width);
  if (!inside || height * width == 0) return 0;
  y = std::clamp<double>(y, 0, static_cast<double>(height - 1));
  x = std::clamp<double>(x, 0, static_cast<double>(width - 1));
  double largest = -std::numeric_limits<double>::infinity();
  for (const double row : {std::floor(y), std::floor(y) + 1}) {
    for (const double column : {std::floor(x), std::floor(x) + 1}) {
      const double weight = (1 - std::abs(y - row)) * (1 - std::abs(x - column));
      const double value =
          weight == 0 ? 0 : weight * plane[static_cast<int64_t>(row) * width + static_cast<int64_t>(column)];
      largest = value > largest ? value : largest;
    }
  }
  return largest;
}

/// A range [begin, end) of a bin's samples, which are `step` apart, the first half a step after `start`. It contains
/// all samples in [low, high]; the others of a huge box are 0.
struct SampleRange {
  int64_t begin, end;

  static SampleRange Within(double start, double step, int64_t samples, double low, double high) {
    if (!(std::fabs(step) > 0)) return {0, samples};
    const double first = (low - start) / step, last = (high - start) / step, max = static_cast<double>(samples);
    const auto clamp = [max](double sample) { return static_cast<int64_t>(std::fmin(std::fmax(sample, 0), max)); };
    return {clamp(std::floor(std::fmin(first, last)) - 2), clamp(std::ceil(std::fmax(first, last)) + 2)};
  }
  int64_t size() const { return std::max<int64_t>(end - begin, 0); }
};

/// The samples of a box on a map of height x width.
class BoxSamples {
 public:
  BoxSamples(const PooledBox& box, const PooledBins& bins, int64_t height, int64_t width)
      : box_(box),
        bin_height_(box.height / static_cast<double>(bins.rows)),
        bin_width_(box.width / static_cast<double>(bins.columns)),
        rows_(Count(bin_height_, bins.samples)),
        columns_(Count(bin_width_, bins.samples)),
        sine_(std::sin(box.angle)),
        cosine_(std::cos(box.angle)) {
    // Ranges along the box's axes of the corners of the region where samples are not 0.
    for (const double y : {-1 - box.y, static_cast<double>(height) - box.y}) {
      for (const double x : {-1 - box.x, static_cast<double>(width) - box.x}) {
        min_v_ = std::fmin(min_v_, x * sine_ + y * cosine_);
        max_v_ = std::fmax(max_v_, x * sine_ + y * cosine_);
        min_u_ = std::fmin(min_u_, x * cosine_ - y * sine_);
        max_u_ = std::fmax(max_u_, x * cosine_ - y * sine_);
      }
    }
  }
  /// Returns the number of samples per bin.
  double PerBin() const { return static_cast<double>(rows_) * static_cast<double>(columns_); }

  /// Calls visit(y, x) for the samples of a bin, row by row, except some that are outside of the map. Returns whether
  /// all were visited.
  template <class Visit>
  bool ForEach(int64_t row, int64_t column, const Visit& visit) const {
    const double row_step = bin_height_ / static_cast<double>(rows_),
                 column_step = bin_width_ / static_cast<double>(columns_);
    const double top = box_.top + static_cast<double>(row) * bin_height_,
                 left = box_.left + static_cast<double>(column) * bin_width_;
    const SampleRange ys = SampleRange::Within(top, row_step, rows_, min_v_, max_v_),
                      xs = SampleRange::Within(left, column_step, columns_, min_u_, max_u_);
    for (int64_t iy = ys.begin; iy < ys.end; ++iy) {
      for (int64_t ix = xs.begin; ix < xs.end; ++ix) {
        const double v = top + (static_cast<double>(iy) + 0.5) * bin_height_ / static_cast<double>(rows_);
        const double u = left + (static_cast<double>(ix) + 0.5) * bin_width_ / static_cast<double>(columns_);
        visit(v * cosine_ - u * sine_ + box_.y, v * sine_ + u * cosine_ + box_.x);
      }
    }
    return static_cast<double>(ys.size()) * static_cast<double>(xs.size()) >= PerBin();
  }

 private:
  int64_t Count(double bin, int64_t samples) const {
    if (!box_.finite) return 0;
    const double pixels = std::ceil(bin);
    return samples > 0 ? samples : pixels > 0 && pixels < 9e15 ? static_cast<int64_t>(pixels) : 0;
  }

  const PooledBox& box_;
  double bin_height_, bin_width_;
  int64_t rows_, columns_;
  double sine_, cosine_;
  double min_v_ = std::numeric_limits<double>::infinity(), max_v_ = -std::numeric_limits<double>::infinity();
  double min_u_ = std::numeric_limits<double>::infinity(), max_u_ = -std::numeric_limits<double>::infinity();
};

/// Pools a box from planes of height x width to `channels` x rows x columns. The maximum ignores NaN; bins without
/// samples are 0.
inline void PoolBox(const PooledBox& box, const PooledBins& bins, const double* planes, int64_t channels,
                    int64_t height, int64_t width, double* to) {
  const BoxSamples samples(box, bins, height, width);
  const double all = samples.PerBin();
  for (int64_t bin = 0; bin < channels * bins.rows * bins.columns; ++bin) {
    const double* plane = planes + bin / (bins.rows * bins.columns) * height * width;
    double sum = 0, largest = -std::numeric_limits<double>::infinity();
    const bool complete = samples.ForEach(bin / bins.columns % bins.rows, bin % bins.columns, [&](double y, double x) {
      const double value =
          bins.corners ? LargestCorner(plane, height, width, y, x) : SampleClamped(plane, height, width, y, x);
      sum += value;
      largest = value > largest ? value : largest;
    });
    if (!complete && !(largest > 0)) largest = 0;
    const double average = all > 0 ? sum / all : 0;
    to[bin] = bins.average ? average : std::isinf(largest) && largest < 0 ? 0 : largest;
  }
}

/// The largest weighted pixel of a bin. Of equal ones, the first pixel with the largest weight.
struct LargestPixel {
  double value = -std::numeric_limits<double>::infinity(), weight = 0;
  int64_t pixel = -1;
  bool zero = false;  // some pixel has the weight 0, or a sample is outside

  /// Takes the four pixels of a sample. Ignores NaN.
  void Take(const double* plane, int64_t height, int64_t width, double y, double x) {
    if (!IsInside(height, width, y, x)) {
      zero = true;
      return;
    }
    y = std::clamp<double>(y, 0, static_cast<double>(height - 1));
    x = std::clamp<double>(x, 0, static_cast<double>(width - 1));
    for (const double row : {std::floor(y), std::floor(y) + 1}) {
      for (const double column : {std::floor(x), std::floor(x) + 1}) {
        const double of_pixel = (1 - std::abs(y - row)) * (1 - std::abs(x - column));
        if (of_pixel == 0) {
          zero = true;
          continue;
        }
        const int64_t at = static_cast<int64_t>(row) * width + static_cast<int64_t>(column);
        const double weighted = of_pixel * plane[at];
        const bool earlier = at < pixel || (at == pixel && of_pixel > weight);
        if (!(weighted > value || (weighted == value && pixel >= 0 && earlier))) continue;
        value = weighted;
        weight = of_pixel;
        pixel = at;
      }
    }
  }
};

/// The gradient of PoolBox with respect to the planes: adds `grad`, of PoolBox's output, to `to`. In the maximum the
/// gradient belongs to the first of the largest samples, or to the first of the largest weighted pixels.
inline void AddPoolBoxBackward(const PooledBox& box, const PooledBins& bins, const double* planes, int64_t channels,
                               int64_t height, int64_t width, const double* grad, double* to) {
  const BoxSamples samples(box, bins, height, width);
  const double all = samples.PerBin();
  for (int64_t bin = 0; bin < channels * bins.rows * bins.columns; ++bin) {
    const int64_t plane = bin / (bins.rows * bins.columns) * height * width;
    const int64_t row = bin / bins.columns % bins.rows, column = bin % bins.columns;
    if (bins.average) {
      samples.ForEach(row, column,
                      [&](double y, double x) { AddSampleClamped(to + plane, height, width, y, x, grad[bin] / all); });
      continue;
    }
    if (bins.corners) {
      LargestPixel largest;
      const bool complete =
          samples.ForEach(row, column, [&](double y, double x) { largest.Take(planes + plane, height, width, y, x); });
      const bool lost = largest.pixel < 0 || ((!complete || largest.zero) && !(largest.value > 0));
      if (!lost) to[plane + largest.pixel] += grad[bin] * largest.weight;
      continue;
    }
    double largest = -std::numeric_limits<double>::infinity(), best_y = 0, best_x = 0;
    bool has_best = false, outside = false;
    const bool complete = samples.ForEach(row, column, [&](double y, double x) {
      if (!IsInside(height, width, y, x)) {
        outside = true;
        return;
      }
      const double value = SampleClamped(planes + plane, height, width, y, x);
      if (!(value > largest)) return;
      largest = value;
      best_y = y;
      best_x = x;
      has_best = true;
    });
    if ((!complete || outside) && !(largest > 0)) has_best = false;
    if (has_best) AddSampleClamped(to + plane, height, width, best_y, best_x, grad[bin]);
  }
}

/// Returns the level of a pyramid that fits a box of `width` x `height` image pixels: the largest level with
/// finest_scale * 2^level <= size.
inline int LevelOfPyramid(const RoiPyramidRule& rule, double width, double height, int levels) {
  int level = 0;
  while (level + 1 < levels &&
         std::sqrt(width * height) / static_cast<double>(rule.finest_scale) + 1e-6 >= std::exp2(level + 1)) {
    ++level;
  }
  return level;
}

/// Pools from the level of a pyramid that fits a box of `width` x `height` image pixels. `box_at(scale)` returns the
/// box on a map of this scale.
template <class BoxAt>
void PoolFromLevel(const RoiPyramidRule& rule, double width, double height, const BoxAt& box_at, bool average,
                   const TensorList<const double, 4>& feats, int64_t image, double* to) {
  const int level = LevelOfPyramid(rule, width, height, feats.size());
  const Tensor<const double, 4>& feat = feats[level];
  const int64_t channels = feat.dim(1), rows = feat.dim(2), columns = feat.dim(3);
  PoolBox(box_at(1.0 / rule.featmap_strides[level]),
          {rule.output_height, rule.output_width, rule.sampling_ratio, average},
          feat.data() + image * channels * rows * columns, channels, rows, columns, to);
}

/// The gradient of PoolFromLevel: adds `grad`, of its output, to `to`, which holds the gradients of one level after the
/// other.
template <class BoxAt>
void AddPoolFromLevelBackward(const RoiPyramidRule& rule, double width, double height, const BoxAt& box_at,
                              bool average, const TensorList<const double, 4>& feats, int64_t image, const double* grad,
                              double* to) {
  const int level = LevelOfPyramid(rule, width, height, feats.size());
  for (int l = 0; l < level; ++l) to += feats[l].size();
  const Tensor<const double, 4>& feat = feats[level];
  const int64_t channels = feat.dim(1), rows = feat.dim(2), columns = feat.dim(3);
  const int64_t first = image * channels * rows * columns;
  AddPoolBoxBackward(box_at(1.0 / rule.featmap_strides[level]),
                     {rule.output_height, rule.output_width, rule.sampling_ratio, average}, feat.data() + first,
                     channels, rows, columns, grad, to + first);
}

}  // namespace polyop::reference
