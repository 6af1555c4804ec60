// The gradient of pooling of axis-aligned regions with respect to the feature map, on the GPU.
#pragma once

#include "families/rois/roi_pool_cuda.h"
#include "kernels/cuda/atomic_add.h"

namespace polyop {
namespace roi_pool_internal {

// The pixels of one axis that a RoI's samples touch, in ascending order, in shared memory.
class TouchedPixels {
 public:
  static constexpr int kSamples = 256, kPixels = 2 * kSamples;
  static constexpr int64_t kSharedBytes = kSamples * (static_cast<int64_t>(sizeof(LinearTaps)) + 4) + kPixels * 8 + 16;

  POLYOP_DEVICE TouchedPixels(Block& block, const RoiAxis& axis, int64_t bins, int64_t extent)
      : taps{axis, bins, extent, block.Shared<LinearTaps>(kSamples), kSamples},
        bin_(block.Shared<int32_t>(kSamples)),
        pixel_(block.Shared<int32_t>(kPixels)),
        first_(block.Shared<int32_t>(kPixels)),
        count_(block.Shared<int32_t>(1)) {}

  const Axis taps;

  POLYOP_DEVICE void Fill(int thread, int threads) const {
    taps.Fill(thread, threads);
    for (int32_t s = thread; taps.kept() && s < Samples(); s += threads) {
      bin_[s] = s / static_cast<int32_t>(taps.axis.samples);
    }
  }
  /// Lists the pixels after Fill, on one thread. Positions ascend, or descend if the bins are negative, so the samples
  /// of a pixel are consecutive.
  POLYOP_DEVICE void List() const {
    int32_t count = 0, last = -1;
    for (int32_t k = 0; taps.kept() && k < Samples(); ++k) {
      const LinearTaps& sample = taps.table[InOrder(k)];
      if (!sample.inside) continue;
      for (const int32_t pixel : {sample.low, sample.high}) {
        if (pixel <= last) continue;
        pixel_[count] = last = pixel;
        first_[count++] = k;
      }
    }
    *count_ = count;
  }
  POLYOP_DEVICE int32_t count() const { return *count_; }
  POLYOP_DEVICE int32_t Pixel(int32_t i) const { return pixel_[i]; }
  /// Calls visit(bin, weight) for each sample that has a weight at pixel i.
  template <class Visit>
  POLYOP_DEVICE void ForEachSample(int32_t i, const Visit& visit) const {
    const int32_t pixel = pixel_[i];
    for (int32_t k = first_[i]; k < Samples(); ++k) {
      const LinearTaps& sample = taps.table[InOrder(k)];
      if (!sample.inside || sample.low > pixel) return;
      const float weight = sample.low == pixel ? sample.low_weight : sample.high_weight;
      if (weight != 0) visit(bin_[InOrder(k)], weight);
    }
  }

 private:
  POLYOP_DEVICE int32_t Samples() const { return static_cast<int32_t>(taps.axis.samples * taps.bins); }
  POLYOP_DEVICE int32_t InOrder(int32_t k) const { return taps.axis.bin < 0 ? Samples() - 1 - k : k; }

  int32_t *bin_, *pixel_, *first_, *count_;
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

// Computes the gradient with respect to one level, of the boxes that are pooled from it.
template <class T>
Status PoolLevelBackwardCuda(const CudaContext& cuda, const RoiPyramid<T>& pyramid, int32_t number,
                             const UprightRois<T>& rois, int64_t count, const RoiPooling& how, const T* grad_output,
                             T* grad_input) {
  const RoiLevel<T> level = pyramid.level[number];
  const int64_t bins = how.rows * how.columns, channels = pyramid.channels, images = pyramid.images;
  const int64_t pixels = level.height * level.width;
  if (images * channels * pixels == 0) return cuda.Check();
  POLYOP_RETURN_IF_ERROR(CheckLevels<T>({&level, 1}));
  return SumAtomically(cuda, images, channels, pixels, grad_input, [&](const ChannelSums& sums) {
    const int64_t group = std::min(sums.count, BlocksFor(8 * kThreadsPerBlock, bins));
    const int64_t parts = BlocksFor(sums.count, group);
    const Divider by_bins(bins), by_columns(how.columns), by_parts(parts);
    constexpr int64_t kShared = 2 * TouchedPixels::kSharedBytes;
    return ForBlocks(cuda, count * parts, kThreadsPerBlock, kShared, [=] POLYOP_DEVICE(Block& block) {
      int64_t part;
      const int64_t r = by_parts.Split(block.index, &part), image = rois.Image(r);
      if (rois.Level(r) != number) return;
      const bool valid = pyramid.Has(image);
      float box[4];
      rois.Box(r, box);
      const TouchedPixels y(block,
                            RoiAxis::Make(box[1], box[3], level.scale, how.aligned, how.rows, how.sampling_ratio),
                            how.rows, level.height);
      const TouchedPixels x(block,
                            RoiAxis::Make(box[0], box[2], level.scale, how.aligned, how.columns, how.sampling_ratio),
                            how.columns, level.width);
      block.ForThreads([&](int t) {
        y.Fill(t, kThreadsPerBlock);
        x.Fill(t, kThreadsPerBlock);
      });
      block.ForThreads([&](int t) {
        if (t == 0) y.List();
        if (t == 32) x.List();
      });
      const int64_t from = sums.first + part * group, left = sums.first + sums.count - from;
      const int64_t held = valid ? (left < group ? left : group) : 0;
      const double samples = static_cast<double>(y.taps.axis.samples) * static_cast<double>(x.taps.axis.samples);
      const float scale = how.average && samples > 0 ? static_cast<float>(1 / samples) : 1;
      if (how.average && y.taps.kept() && x.taps.kept()) {
        block.ForThreads([&](int t) {
          const int64_t across = x.count(), touched = y.count() * across;
          for (int64_t i = t; i < held * touched; i += kThreadsPerBlock) {
            const auto at = static_cast<uint32_t>(i), area = static_cast<uint32_t>(touched);
            const uint32_t pixel = at % area, row = pixel / static_cast<uint32_t>(across);
            const int64_t c = from + at / area;
            const T* const grads = grad_output + (r * channels + c) * bins;
            float sum = 0;
            y.ForEachSample(static_cast<int32_t>(row), [&](int32_t by, float y_weight) {
              x.ForEachSample(static_cast<int32_t>(pixel % across), [&](int32_t bx, float x_weight) {
                sum += y_weight * x_weight * ToFloat(grads[by * how.columns + bx]);
              });
            });
            const int64_t to = y.Pixel(row) * level.width + x.Pixel(static_cast<int32_t>(pixel % across));
            AtomicAdd(sums.Plane(image, c) + to, sum * scale);
          }
        });
        return;
      }
      block.ForThreads([&](int t) {
        for (int64_t i = t; i < held * bins; i += kThreadsPerBlock) {
          int64_t bin, column, y_begin, y_end, x_begin, x_end;
          const int64_t c = from + by_bins.Split(i, &bin), row = by_columns.Split(bin, &column);
          const float grad = ToFloat(grad_output[(r * channels + c) * bins + bin]) * scale;
          float* const to = sums.Plane(image, c);
          if (!how.average) {
            AddMaximum(y.taps, x.taps, row, column, pyramid.Plane(level, image, c), grad, level.width, how.corners, to);
            continue;
          }
          y.taps.Range(row, &y_begin, &y_end);
          x.taps.Range(column, &x_begin, &x_end);
          for (int64_t iy = y_begin; iy < y_end; ++iy) {
            const LinearTaps down = y.taps.At(row, iy);
            for (int64_t ix = x_begin; ix < x_end; ++ix) {
              AddSample({down, x.taps.At(column, ix)}, grad, level.width, to);
            }
          }
        }
      });
    });
  });
}

}  // namespace roi_pool_internal

/// Computes the gradient of PoolRoisCuda with respect to the levels of the pyramid, one after the other in
/// `grad_input`. A RoI with an invalid batch index adds nothing. Each block adds some channels of one RoI. For averages
/// a thread gathers the gradient of a pixel from the bins and adds it once. For a box with very many samples, it adds
/// every sample.
template <class T>
Status PoolRoisBackwardCuda(const CudaContext& cuda, const RoiPyramid<T>& pyramid, const UprightRois<T>& rois,
                            int64_t count, const RoiPooling& how, const T* grad_output, T* grad_input) {
  for (int32_t l = 0; l < rois.levels; ++l) {
    const RoiLevel<T>& level = pyramid.level[l];
    POLYOP_RETURN_IF_ERROR(
        roi_pool_internal::PoolLevelBackwardCuda(cuda, pyramid, l, rois, count, how, grad_output, grad_input));
    grad_input += pyramid.images * pyramid.channels * level.height * level.width;
  }
  return Status::Ok();
}

}  // namespace polyop
