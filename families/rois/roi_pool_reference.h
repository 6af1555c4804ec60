// Pooling by RoIAlign's rule in double precision, sample by sample: for reference kernels only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/tensor.h"
#include "families/rois/roi_pyramid_rule.h"
#include "families/sampling/reference_sampling.h"

namespace polyop::reference {

/// A box on a feature map: it begins at (left, top) in its own axes, which are turned by `angle` about (x, y).
struct PooledBox {
  double x, y, angle, left, top, width, height;
  bool finite;  // else it has no samples

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
  static PooledBox Turned(double x, double y, double width, double height, double angle, double scale, bool aligned) {
    const double shift = aligned ? 0.5 : 0, w = Extent(width * scale, aligned), h = Extent(height * scale, aligned);
    const bool finite = std::isfinite(x) && std::isfinite(y) && std::isfinite(width) && std::isfinite(height);
    return {x * scale - shift, y * scale - shift, angle, -w / 2, -h / 2, w, h, finite && std::isfinite(angle)};
  }

 private:
  static double Extent(double pixels, bool aligned) { return aligned ? pixels : std::fmax(pixels, 1); }
};

/// How many bins, and samples of each along an axis; 0 or less of these: one for each pixel.
struct PooledBins {
  int64_t rows, columns, samples;
  bool average;          // else the maximum, …
  bool corners = false;  // … of the samples' four weighted pixels instead of the samples
};

/// The greatest of a sample's four weighted pixels, where one of weight 0 is 0; NaN is passed over.
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

/// Samples [begin, end) of a bin, `step` apart, the first half a step behind `start`: all that lie in [low, high], and
/// some more. Those left out of a giant box are 0.
struct SampleRange {
  int64_t begin, end;

  static SampleRange Within(double start, double step, int64_t samples, double low, double high) {
    if (!(std::fabs(step) > 0)) return {0, samples};
    const double first = (low - start) / step, last = (high - start) / step, most = static_cast<double>(samples);
    const auto clamp = [most](double sample) { return static_cast<int64_t>(std::fmin(std::fmax(sample, 0), most)); };
    return {clamp(std::floor(std::fmin(first, last)) - 2), clamp(std::ceil(std::fmax(first, last)) + 2)};
  }
  int64_t size() const { return std::max<int64_t>(end - begin, 0); }
};

/// Pools a box from planes of height x width to `channels` x rows x columns. The maximum passes NaN over; bins without
/// samples are 0.
inline void PoolBox(const PooledBox& box, const PooledBins& bins, const double* planes, int64_t channels,
                    int64_t height, int64_t width, double* to) {
  const double bin_height = box.height / static_cast<double>(bins.rows),
               bin_width = box.width / static_cast<double>(bins.columns);
  const auto samples = [&](double bin) -> int64_t {
    if (!box.finite) return 0;
    const double pixels = std::ceil(bin);
    return bins.samples > 0 ? bins.samples : pixels > 0 && pixels < 9e15 ? static_cast<int64_t>(pixels) : 0;
  };
  const int64_t rows = samples(bin_height), columns = samples(bin_width);
  const double row_step = bin_height / static_cast<double>(rows),
               column_step = bin_width / static_cast<double>(columns),
               all = static_cast<double>(rows) * static_cast<double>(columns);
  const double sine = std::sin(box.angle), cosine = std::cos(box.angle);
  // The box's axes at the corners of what samples may see.
  double least_v = std::numeric_limits<double>::infinity(), most_v = -least_v, least_u = least_v, most_u = -least_v;
  for (const double y : {-1 - box.y, static_cast<double>(height) - box.y}) {
    for (const double x : {-1 - box.x, static_cast<double>(width) - box.x}) {
      least_v = std::fmin(least_v, x * sine + y * cosine);
      most_v = std::fmax(most_v, x * sine + y * cosine);
      least_u = std::fmin(least_u, x * cosine - y * sine);
      most_u = std::fmax(most_u, x * cosine - y * sine);
    }
  }
  for (int64_t bin = 0; bin < channels * bins.rows * bins.columns; ++bin) {
    const double by = static_cast<double>(bin / bins.columns % bins.rows), bx = static_cast<double>(bin % bins.columns);
    const double* plane = planes + bin / (bins.rows * bins.columns) * height * width;
    const double top = box.top + by * bin_height, left = box.left + bx * bin_width;
    const SampleRange ys = SampleRange::Within(top, row_step, rows, least_v, most_v),
                      xs = SampleRange::Within(left, column_step, columns, least_u, most_u);
    const double seen = static_cast<double>(ys.size()) * static_cast<double>(xs.size());
    double sum = 0, largest = seen < all ? 0 : -std::numeric_limits<double>::infinity();
    for (int64_t iy = ys.begin; iy < ys.end; ++iy) {
      for (int64_t ix = xs.begin; ix < xs.end; ++ix) {
        const double v = top + (static_cast<double>(iy) + 0.5) * bin_height / static_cast<double>(rows);
        const double u = left + (static_cast<double>(ix) + 0.5) * bin_width / static_cast<double>(columns);
        const double y = v * cosine - u * sine + box.y, x = v * sine + u * cosine + box.x;
        const double value =
            bins.corners ? LargestCorner(plane, height, width, y, x) : SampleClamped(plane, height, width, y, x);
        sum += value;
        largest = value > largest ? value : largest;
      }
    }
    const double average = all > 0 ? sum / all : 0;
    to[bin] = bins.average ? average : std::isinf(largest) && largest < 0 ? 0 : largest;
  }
}

/// The same from the level of a pyramid that fits a box of `width` x `height` pixels of the picture: the largest whose
/// boxes begin at finest_scale * 2^level. `place(scale)` is the box on a map of this scale.
template <class Place>
void PoolFromLevel(const RoiPyramidRule& rule, double width, double height, const Place& place, bool average,
                   const TensorList<const double, 4>& feats, int64_t picture, double* to) {
  int level = 0;
  while (level + 1 < feats.size() &&
         std::sqrt(width * height) / static_cast<double>(rule.finest_scale) + 1e-6 >= std::exp2(level + 1)) {
    ++level;
  }
  const Tensor<const double, 4>& feat = feats[level];
  const int64_t channels = feat.dim(1), rows = feat.dim(2), columns = feat.dim(3);
  PoolBox(place(1.0 / rule.featmap_strides[level]),
          {rule.output_height, rule.output_width, rule.sampling_ratio, average},
          feat.data() + picture * channels * rows * columns, channels, rows, columns, to);
}

}  // namespace polyop::reference
