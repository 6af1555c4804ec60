// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/rois/roi_pool/roi_pool.h"
#include "ops/rois/roi_pool/roi_pool_bins.h"
#include "ops/rois/roi_pool_cuda.h"

namespace polyop {
namespace {

// The largest of some pixels; of equal ones, the first in the order of rows. Ignores NaN and -infinity.
struct LargestPixel {
  float value = -INFINITY;
  int32_t pixel = -1;

  // Takes pixels [begin, end) of a column.
  template <class T>
  POLYOP_DEVICE void TakeDown(const T* plane, int64_t width, int32_t column, int32_t begin, int32_t end) {
    const T* at = plane + begin * width + column;
    for (int32_t y = begin; y < end; ++y, at += width) {
      const float next = ToFloat(*at);
      if (!(next > value)) continue;
      value = next;
      pixel = y * static_cast<int32_t>(width) + column;
    }
  }
  POLYOP_DEVICE void Take(const LargestPixel& next) {
    const bool earlier = next.value == value && next.pixel >= 0 && next.pixel < pixel;
    if (next.value > value || earlier) *this = next;
  }
};

// First, each thread finds the largest pixel of every bin down a column of pixels of one channel; neighbouring threads
// have neighbouring columns. Then each thread compares the columns of a bin. A RoI with an invalid batch index gives
// NaN. Blocks of the same channels are consecutive, so that their planes stay in the cache.
template <class T>
Status RoiPoolCuda(const RoiPool& op, const CudaContext& cuda, Tensor<const T, 4> input, Tensor<const T, 2> rois,
                   Tensor<T, 4> output, Tensor<int32_t, 4> argmax) {
  if (output.size() == 0) return cuda.Check();
  constexpr int kMaxBins = 64, kColumns = 2048;  // bins of an axis and columns in shared memory
  const int64_t width = input.dim(3), channels = input.dim(1), count = rois.dim(0);
  const int64_t height = width > 0 ? input.dim(2) : 0;  // an image of width 0 may have billions of rows
  RoiPyramid<T> pyramid{{}, input.dim(0), channels};
  pyramid.level[0] = {input.data(), height, width, 1.0};
  const T* const rows = rois.data();
  T* const output_data = output.data();
  int32_t* const argmax_data = argmax.data();
  const int64_t bins = op.output_height * op.output_width, group = roi_pool_internal::ChannelsOfBlock(channels, bins);
  const bool fits = op.output_height <= kMaxBins && op.output_width <= kMaxBins;
  const Divider by_bins(bins), by_columns(op.output_width), by_count(count);
  constexpr int64_t kShared = 4 * kMaxBins * 4 + kColumns * static_cast<int64_t>(sizeof(LargestPixel));
  const int64_t blocks = count * BlocksFor(channels, group);
  return ForBlocks<kThreadsPerBlock, 5>(cuda, blocks, kThreadsPerBlock, kShared, [=] POLYOP_DEVICE(Block& block) {
    int64_t r;
    const int64_t first = by_count.Split(block.index, &r) * group;
    const auto held = static_cast<int32_t>(channels - first < group ? channels - first : group);
    const auto down = static_cast<int32_t>(op.output_height), across = static_cast<int32_t>(op.output_width);
    const auto of_channel = static_cast<int32_t>(bins);
    const int64_t image = ImageOf(ToFloat(rows[5 * r]));
    T* const to = output_data + (r * channels + first) * bins;
    int32_t* const indices = argmax_data + (r * channels + first) * bins;
    const auto store = [&](int32_t i, const LargestPixel& largest) {
      to[i] = FromFloat<T>(largest.pixel < 0 ? 0 : largest.value);
      indices[i] = largest.pixel;
    };
    if (!pyramid.Has(image)) {
      block.ForThreads([&](int t) {
        for (int32_t i = t; i < held * of_channel; i += kThreadsPerBlock) {
          to[i] = FromFloat<T>(NAN);
          indices[i] = -1;
        }
      });
      return;
    }
    int32_t* const y_bins = block.Shared<int32_t>(2 * kMaxBins);  // begin and end
    int32_t* const x_bins = block.Shared<int32_t>(2 * kMaxBins);
    LargestPixel* const largest = block.Shared<LargestPixel>(kColumns);
    block.ForThreads([&](int t) {
      if (!fits || t >= down + across) return;
      const RoiPoolBox box = RoiPoolBox::Of(op, rows + 5 * r);
      const PixelRange range = t < down ? box.y.Bin(t, height) : box.x.Bin(t - down, width);
      int32_t* const bin = t < down ? y_bins + 2 * t : x_bins + 2 * (t - down);
      bin[0] = static_cast<int32_t>(range.begin);
      bin[1] = static_cast<int32_t>(range.end);
    });
    const int32_t left = fits ? x_bins[0] : 0, right = fits ? x_bins[2 * across - 1] : 0;
    const int32_t columns = right > left ? right - left : 0;
    // A very wide box, or one of very many bins, is pooled bin by bin.
    if (!fits || columns > kColumns / down) {
      block.ForThreads([&](int t) {
        const RoiPoolBox box = RoiPoolBox::Of(op, rows + 5 * r);
        for (int32_t i = t; i < held * of_channel; i += kThreadsPerBlock) {
          int64_t bin, column;
          const int64_t c = first + by_bins.Split(i, &bin), row = by_columns.Split(bin, &column);
          const PixelRange ys = box.y.Bin(row, height), xs = box.x.Bin(column, width);
          LargestPixel all;
          for (int64_t x = xs.begin; x < xs.end; ++x) {
            LargestPixel one;
            one.TakeDown(pyramid.Plane(pyramid.level[0], image, c), width, static_cast<int32_t>(x),
                         static_cast<int32_t>(ys.begin), static_cast<int32_t>(ys.end));
            all.Take(one);
          }
          store(i, all);
        }
      });
      return;
    }
    const int32_t at_once = columns == 0 ? held : kColumns / (down * columns);
    for (int32_t c = 0; c < held; c += at_once) {
      const int32_t some = held - c < at_once ? held - c : at_once;
      block.ForThreads([&](int t) {
        for (int32_t i = t; i < some * columns; i += kThreadsPerBlock) {
          const auto channel = static_cast<int32_t>(static_cast<uint32_t>(i) / static_cast<uint32_t>(columns));
          const int32_t column = i - channel * columns;
          const T* const plane = pyramid.Plane(pyramid.level[0], image, first + c + channel);
          for (int32_t row = 0; row < down; ++row) {
            LargestPixel one;
            one.TakeDown(plane, width, left + column, y_bins[2 * row], y_bins[2 * row + 1]);
            largest[(channel * down + row) * columns + column] = one;
          }
        }
      });
      block.ForThreads([&](int t) {
        for (int32_t i = t; i < some * of_channel; i += kThreadsPerBlock) {
          int64_t bin;
          const auto row = static_cast<int32_t>(by_columns.Split(i, &bin));  // of all channels
          LargestPixel all;
          for (int32_t x = x_bins[2 * bin]; x < x_bins[2 * bin + 1]; ++x) {
            all.Take(largest[row * columns + x - left]);
          }
          store(c * of_channel + i, all);
        }
      });
    }
  });
}

POLYOP_CUDA_KERNELS(RoiPool, RoiPoolCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
