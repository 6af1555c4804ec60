// SPDX-License-Identifier: Apache-2.0
// The gradient of pooling of axis-aligned regions with respect to the feature map, on the GPU.
#pragma once

#include "kernels/cuda/atomic_add.h"
#include "ops/rois/roi_pool_cuda.h"

namespace polyop {
namespace roi_pool_internal {

// The columns of pixels that a RoI's samples touch, in shared memory.
class TouchedColumns {
 public:
  static constexpr int kSamples = 256;
  static constexpr int64_t kSharedBytes = kSamples * (static_cast<int64_t>(sizeof(PixelPair)) + 20) + 16;

  POLYOP_DEVICE TouchedColumns(Block& block, const RoiAxis& axis, int64_t bins)
      : samples_(block.Shared<PixelPair>(kSamples)),
        bin_(block.Shared<int32_t>(kSamples)),
        pixel_(block.Shared<int32_t>(2 * kSamples)),
        first_(block.Shared<int32_t>(2 * kSamples)),
        count_(block.Shared<int32_t>(1)),
        size_(static_cast<int32_t>(axis.samples * bins)),
        descending_(axis.bin < 0) {}

  POLYOP_DEVICE void Fill(const RoiAxis& axis, int64_t bins, int64_t extent, int thread) const {
    FillPairs(axis, bins, extent, 1, thread, false, samples_);
    for (int32_t k = thread; k < size_; k += kThreadsPerBlock) bin_[k] = k / static_cast<int32_t>(axis.samples);
  }
  /// Lists the columns after Fill in ascending order, on one thread. Positions ascend or descend, so the samples of a
  /// column are consecutive.
  POLYOP_DEVICE void List() const {
    int32_t count = 0, last = -1;
    for (int32_t k = 0; k < size_; ++k) {
      const PixelPair sample = samples_[InOrder(k)];
      if (sample.low > last) {
        pixel_[count] = last = sample.low;
        first_[count++] = k;
      }
      if (sample.high > last) {
        pixel_[count] = last = sample.high;
        first_[count++] = k;
      }
    }
    *count_ = count;
  }
  POLYOP_DEVICE int32_t count() const { return *count_; }

  /// Column i of the list, and the weights of its bins.
  class Column {
   public:
    POLYOP_DEVICE Column(const TouchedColumns& columns, int32_t i)
        : pixel(columns.pixel_[i]), columns_(columns), rest_(columns.first_[i]) {
      for (int n = 0; n < 2; ++n) {
        bin_[n] = columns_.BinOf(rest_);
        weight_[n] = WeightOf(rest_);
        if (weight_[n] >= 0) ++rest_;
      }
    }

    const int32_t pixel;

    /// Returns the weighted sum of a row of bins. A gradient whose weight is 0 is not read.
    template <class T>
    POLYOP_DEVICE float Sum(const T* grads) const {
      float sum = 0;
      for (int n = 0; n < 2; ++n) {
        if (weight_[n] > 0) sum += weight_[n] * ToFloat(grads[bin_[n]]);
      }
      if (weight_[1] < 0) return sum;
      for (int32_t k = rest_;; ++k) {
        const float weight = WeightOf(k);
        if (weight < 0) return sum;
        if (weight > 0) sum += weight * ToFloat(grads[columns_.BinOf(k)]);
      }
    }

   private:
    // Returns the weight of sample k at the column, or -1 if the samples of the column have ended.
    POLYOP_DEVICE float WeightOf(int32_t k) const {
      if (k >= columns_.size_) return -1;
      const PixelPair sample = columns_.samples_[columns_.InOrder(k)];
      if (sample.low < 0 || sample.low > pixel) return -1;
      return sample.low == pixel ? sample.low_weight : sample.high_weight;
    }

    const TouchedColumns& columns_;
    int32_t bin_[2];
    float weight_[2];
    int32_t rest_;
  };

 private:
  POLYOP_DEVICE int32_t InOrder(int32_t k) const { return descending_ ? size_ - 1 - k : k; }
  POLYOP_DEVICE int32_t BinOf(int32_t k) const { return k < size_ ? bin_[InOrder(k)] : 0; }

  PixelPair* samples_;
  int32_t *bin_, *pixel_, *first_, *count_, size_;
  bool descending_;
};

// Sums of two neighbouring rows of a column of pixels, which are added to memory when the next samples are in others.
class RowSums {
 public:
  POLYOP_DEVICE RowSums(float* column, int64_t width) : column_(column), width_(static_cast<int32_t>(width)) {}

  POLYOP_DEVICE void Add(const PixelPair& sample, float value) {
    if (sample.low < 0) return;
    if (sample.low != row_) MoveTo(sample.low);
    if (sample.low_weight != 0) {
      low_ += sample.low_weight * value;
      has_low_ = true;
    }
    if (sample.high_weight != 0) {
      high_ += sample.high_weight * value;
      has_high_ = true;
    }
  }
  POLYOP_DEVICE void Finish() const {
    if (has_low_) AtomicAdd(column_ + row_ * width_, low_);
    if (has_high_) AtomicAdd(column_ + (row_ + 1) * width_, high_);
  }

 private:
  POLYOP_DEVICE void MoveTo(int32_t row) {
    const bool next = row == row_ + 1;
    if (has_low_) AtomicAdd(column_ + row_ * width_, low_);
    if (has_high_ && !next) AtomicAdd(column_ + (row_ + 1) * width_, high_);
    low_ = next ? high_ : 0;
    has_low_ = next && has_high_;
    high_ = 0;
    has_high_ = false;
    row_ = row;
  }

  float* column_;
  int32_t width_, row_ = -2;
  float low_ = 0, high_ = 0;
  bool has_low_ = false, has_high_ = false;
};

// Adds `grad` times its weights to the pixels of a sample.
POLYOP_DEVICE inline void AddSample(const RoiSample& sample, float grad, int64_t width, float* plane) {
  sample.ForEachTap(width, [&](const Tap& tap) { AtomicAdd(plane + tap.index, tap.weight * grad); });
}

// The largest weighted pixel of a bin. Of equal ones, the first pixel with the largest weight.
struct LargestPixel {
  float value = -INFINITY, weight = 0;
  int64_t pixel = -1;
  bool zero = false;  // some pixel has the weight 0, which counts as 0

  /// Takes the four pixels of a sample. Ignores NaN.
  template <class T>
  POLYOP_DEVICE void Take(const RoiSample& sample, const T* plane, int64_t width) {
    for (int k = 0; k < 4; ++k) {
      const LinearTaps &y = sample.y, &x = sample.x;
      const float of_pixel = (k / 2 ? y.high_weight : y.low_weight) * (k % 2 ? x.high_weight : x.low_weight);
      zero = zero || of_pixel == 0;
      if (of_pixel == 0) continue;
      const int64_t at = (k / 2 ? y.high : y.low) * width + (k % 2 ? x.high : x.low);
      const float weighted = of_pixel * ToFloat(plane[at]);
      const bool earlier = at < pixel || (at == pixel && of_pixel > weight);
      if (!(weighted > value || (weighted == value && pixel >= 0 && earlier))) continue;
      value = weighted;
      weight = of_pixel;
      pixel = at;
    }
  }
};

// Gives the gradient of a bin to the first of its largest samples, or with `corners` to its largest weighted pixel.
template <class T>
POLYOP_DEVICE void AddMaximum(const Axis& y, const Axis& x, int64_t row, int64_t column, const T* plane, float grad,
                              int64_t width, bool corners, float* sums) {
  int64_t y_begin, y_end, x_begin, x_end;
  y.Range(row, &y_begin, &y_end);
  x.Range(column, &x_begin, &x_end);
  // Samples outside of the map, also those that Range excludes, are 0. If that is the maximum, the gradient is lost.
  bool zero = y_end - y_begin < y.axis.samples || x_end - x_begin < x.axis.samples;
  float largest = -INFINITY;
  RoiSample first;
  LargestPixel largest_pixel;
  for (int64_t iy = y_begin; iy < y_end; ++iy) {
    for (int64_t ix = x_begin; ix < x_end; ++ix) {
      const RoiSample sample{y.At(row, iy), x.At(column, ix)};
      if (!sample.y.inside || !sample.x.inside) {
        zero = true;
        continue;
      }
      if (corners) {
        largest_pixel.Take(sample, plane, width);
        continue;
      }
      const float value = sample.Of(plane, width);
      if (!(value > largest)) continue;
      largest = value;
      first = sample;
    }
  }
  if (corners) {
    const bool lost = (zero || largest_pixel.zero) && !(largest_pixel.value > 0);
    if (largest_pixel.pixel >= 0 && !lost) AtomicAdd(sums + largest_pixel.pixel, largest_pixel.weight * grad);
  } else if (!zero || largest > 0) {
    AddSample(first, grad, width, sums);
  }
}

// What the kernels of a level share.
template <class T>
struct LevelGrads {
  RoiPyramid<T> pyramid;
  RoiLevel<T> level;
  int32_t number;
  UprightRois<T> rois;
  RoiPooling how;
  const T* grads;

  POLYOP_DEVICE bool Has(int64_t r) const { return rois.Level(r) == number && pyramid.Has(rois.Image(r)); }
  POLYOP_DEVICE void Axes(int64_t r, RoiAxis* y, RoiAxis* x) const {
    float box[4];
    rois.Box(r, box);
    *y = RoiAxis::Make(box[1], box[3], level.scale, how.aligned, how.rows, how.sampling_ratio);
    *x = RoiAxis::Make(box[0], box[2], level.scale, how.aligned, how.columns, how.sampling_ratio);
  }
  /// Returns the gradients of the bins of a channel.
  POLYOP_DEVICE const T* Bins(int64_t r, int64_t channel) const {
    return grads + (r * pyramid.channels + channel) * how.rows * how.columns;
  }
};

// Adds the gradients of averages. Each thread adds all that a RoI gives to a column of pixels of one channel: first it
// sums a row of bins, then it distributes the sum to rows of pixels. Neighbouring threads have neighbouring columns.
// For a box with very many samples, a thread adds every sample of a bin.
template <class T>
Status AddAverageGrads(const CudaContext& cuda, int64_t count, const LevelGrads<T>& of, const ChannelSums& sums) {
  const int64_t bins = of.how.rows * of.how.columns, group = ChannelsOfBlock(sums.count, bins);
  const Divider by_bins(bins), by_columns(of.how.columns), by_count(count);
  constexpr int kSamples = TouchedColumns::kSamples;
  constexpr int64_t kShared = TouchedColumns::kSharedBytes + kSamples * static_cast<int64_t>(sizeof(PixelPair));
  const int64_t blocks = count * BlocksFor(sums.count, group);
  return ForBlocks<kThreadsPerBlock, 5>(cuda, blocks, kThreadsPerBlock, kShared, [=] POLYOP_DEVICE(Block& block) {
    int64_t r;
    const int64_t from = sums.first + by_count.Split(block.index, &r) * group;
    if (!of.Has(r)) return;
    const int64_t left = sums.first + sums.count - from, image = of.rois.Image(r), width = of.level.width;
    const auto held = static_cast<int32_t>(left < group ? left : group);
    RoiAxis y, x;
    of.Axes(r, &y, &x);
    const float scale =
        y.samples > 0 && x.samples > 0 ? 1 / (static_cast<float>(y.samples) * static_cast<float>(x.samples)) : 0;
    if (y.samples > kSamples / of.how.rows || x.samples > kSamples / of.how.columns) {
      const Axis ys{y, of.how.rows, of.level.height, nullptr, 0}, xs{x, of.how.columns, width, nullptr, 0};
      block.ForThreads([&](int t) {
        for (int64_t i = t; i < held * bins; i += kThreadsPerBlock) {
          int64_t bin, column, y_begin, y_end, x_begin, x_end;
          const int64_t c = from + by_bins.Split(i, &bin), row = by_columns.Split(bin, &column);
          const float grad = ToFloat(of.Bins(r, c)[bin]) * scale;
          ys.Range(row, &y_begin, &y_end);
          xs.Range(column, &x_begin, &x_end);
          for (int64_t iy = y_begin; iy < y_end; ++iy) {
            const LinearTaps down = ys.At(row, iy);
            for (int64_t ix = x_begin; ix < x_end; ++ix) {
              AddSample({down, xs.At(column, ix)}, grad, width, sums.Plane(image, c));
            }
          }
        }
      });
      return;
    }
    PixelPair* const down = block.Shared<PixelPair>(kSamples);
    const TouchedColumns across(block, x, of.how.columns);
    block.ForThreads([&](int t) {
      FillPairs(y, of.how.rows, of.level.height, 1, t, false, down);
      across.Fill(x, of.how.columns, width, t);
    });
    block.ForThreads([&](int t) {
      if (t == 0) across.List();
    });
    const auto rows = static_cast<int32_t>(of.how.rows), columns = static_cast<int32_t>(of.how.columns);
    const auto samples = static_cast<int32_t>(y.samples);
    block.ForThreads([&](int t) {
      const int32_t touched = across.count();
      for (int32_t i = t; i < held * touched; i += kThreadsPerBlock) {
        const auto channel = static_cast<int32_t>(static_cast<uint32_t>(i) / static_cast<uint32_t>(touched));
        const TouchedColumns::Column column(across, i - channel * touched);
        const T* const grads = of.Bins(r, from + channel);
        RowSums to(sums.Plane(image, from + channel) + column.pixel, width);
        for (int32_t row = 0; row < rows; ++row) {
          const float sum = column.Sum(grads + row * columns) * scale;
          for (int32_t k = row * samples; k < (row + 1) * samples; ++k) to.Add(down[k], sum);
        }
        to.Finish();
      }
    });
  });
}

// Adds the gradients of maxima, each thread that of one bin of one channel.
template <class T>
Status AddMaximumGrads(const CudaContext& cuda, int64_t count, const LevelGrads<T>& of, const ChannelSums& sums) {
  constexpr int kSamples = 256;
  const int64_t bins = of.how.rows * of.how.columns, group = ChannelsOfBlock(sums.count, bins);
  const Divider by_bins(bins), by_columns(of.how.columns), by_count(count);
  constexpr int64_t kShared = 2 * kSamples * static_cast<int64_t>(sizeof(LinearTaps));
  const int64_t blocks = count * BlocksFor(sums.count, group);
  return ForBlocks(cuda, blocks, kThreadsPerBlock, kShared, [=] POLYOP_DEVICE(Block& block) {
    int64_t r;
    const int64_t from = sums.first + by_count.Split(block.index, &r) * group;
    if (!of.Has(r)) return;
    const int64_t left = sums.first + sums.count - from, held = left < group ? left : group;
    const int64_t image = of.rois.Image(r);
    RoiAxis y_axis, x_axis;
    of.Axes(r, &y_axis, &x_axis);
    const Axis y{y_axis, of.how.rows, of.level.height, block.Shared<LinearTaps>(kSamples), kSamples};
    const Axis x{x_axis, of.how.columns, of.level.width, block.Shared<LinearTaps>(kSamples), kSamples};
    block.ForThreads([&](int t) {
      y.Fill(t, kThreadsPerBlock);
      x.Fill(t, kThreadsPerBlock);
    });
    block.ForThreads([&](int t) {
      for (int64_t i = t; i < held * bins; i += kThreadsPerBlock) {
        int64_t bin, column;
        const int64_t c = from + by_bins.Split(i, &bin), row = by_columns.Split(bin, &column);
        AddMaximum(y, x, row, column, of.pyramid.Plane(of.level, image, c), ToFloat(of.Bins(r, c)[bin]), of.level.width,
                   of.how.corners, sums.Plane(image, c));
      }
    });
  });
}

}  // namespace roi_pool_internal

/// Computes the gradient of PoolRoisCuda with respect to the levels of the pyramid, one after the other in
/// `grad_input`. A RoI with an invalid batch index adds nothing. Each block adds some channels of one RoI.
template <class T>
Status PoolRoisBackwardCuda(const CudaContext& cuda, const RoiPyramid<T>& pyramid, const UprightRois<T>& rois,
                            int64_t count, const RoiPooling& how, const T* grad_output, T* grad_input) {
  using namespace roi_pool_internal;
  for (int32_t l = 0; l < rois.levels; ++l) {
    const RoiLevel<T>& level = pyramid.level[l];
    const int64_t pixels = level.height * level.width;
    if (pyramid.images * pyramid.channels * pixels == 0) continue;
    POLYOP_RETURN_IF_ERROR(CheckLevels<T>({&level, 1}));
    const LevelGrads<T> of{pyramid, level, l, rois, how, grad_output};
    POLYOP_RETURN_IF_ERROR(
        SumAtomically(cuda, pyramid.images, pyramid.channels, pixels, grad_input, [&](const ChannelSums& sums) {
          return how.average ? AddAverageGrads(cuda, count, of, sums) : AddMaximumGrads(cuda, count, of, sums);
        }));
    grad_input += pyramid.images * pyramid.channels * pixels;
  }
  return cuda.Check();
}

}  // namespace polyop
