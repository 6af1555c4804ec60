// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/upright_backward.h"

#include <algorithm>
#include <limits>
#include <span>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rois/upright_backward.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/largest_block-inl.h"
#include "kernels/cpu/scatter_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/rois/upright_table.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The first and the last row of the map that a box touches.
struct RowRange {
  int32_t first, last;

  static RowRange Of(const AxisTaps& rows, int64_t bins) {
    RowRange range{std::numeric_limits<int32_t>::max(), -1};
    for (int32_t t = 0; t < rows.Begin(bins); ++t) {
      range.first = std::min(range.first, rows.taps[t].index);
      range.last = std::max(range.last, rows.taps[t].index);
    }
    return range;
  }
};

// Spreads the gradient of each bin over its pixels: rows and columns of taps. `tile` is [rows][columns][16].
void AddAverage(const UprightRoi& roi, const RoiPooling& how, const float* tile, const BlockBand& band) {
  for (int64_t by = 0; by < how.rows; ++by) {
    for (int32_t ty = roi.rows.begin[by]; ty < roi.rows.begin[by + 1]; ++ty) {
      const Tap& y = roi.rows.taps[ty];
      if (!band.HasRow(y.index)) continue;
      float* const row = band.Row(y.index);
      for (int64_t bx = 0; bx < how.columns; ++bx) {
        BlockSum grad;
        grad.Load(tile + (by * how.columns + bx) * kBlockChannels);
        grad.Scale(y.weight * roi.scale);
        for (int32_t tx = roi.columns.begin[bx]; tx < roi.columns.begin[bx + 1]; ++tx) {
          const Tap& x = roi.columns.taps[tx];
          AddToBlock(grad, x.weight, row + int64_t{x.index} * kBlockChannels);
        }
      }
    }
  }
}

// Sets `sum` to the bilinear sample of rows y[0], y[1] and columns x[0], x[1] of pixels [height * width][16].
HWY_INLINE void Sample(const Tap* y, const Tap* x, const float* pixels, int64_t width, BlockSum& sum) {
  sum.Fill(0);
  for (int64_t v = 0; v < 2; ++v) {
    const float* const row = pixels + int64_t{y[v].index} * width * kBlockChannels;
    BlockSum across;
    across.Fill(0);
    for (int64_t u = 0; u < 2; ++u) across.Add(row + int64_t{x[u].index} * kBlockChannels, x[u].weight);
    sum.Add(across, y[v].weight);
  }
}

// Gives the gradient of each bin to its largest sample, channel by channel. `pixels` is [height * width][16].
void AddMaximum(const UprightRoi& roi, const RoiPooling& how, const float* tile, const float* pixels, int64_t width,
                const BlockBand& band) {
  for (int64_t bin = 0; bin < how.rows * how.columns; ++bin) {
    const int64_t by = bin / how.columns, bx = bin % how.columns;
    const int32_t y_begin = roi.rows.Begin(by), y_end = roi.rows.Begin(by + 1);
    const int32_t x_begin = roi.columns.Begin(bx), x_end = roi.columns.Begin(bx + 1);
    const auto for_each_sample = [&](const auto& visit) HWY_ATTR {
      int32_t index = 0;
      for (int32_t y = y_begin; y < y_end; y += 2) {
        for (int32_t x = x_begin; x < x_end; x += 2) visit(roi.rows.taps + y, roi.columns.taps + x, index++);
      }
    };
    const bool zero = roi.rows.Marked(by) || roi.columns.Marked(bx);  // a sample outside of the map is 0
    LargestBlock largest(zero ? 0.0f : -std::numeric_limits<float>::infinity());
    for_each_sample([&](const Tap* y, const Tap* x, int32_t index) HWY_ATTR {
      BlockSum sample;
      Sample(y, x, pixels, width, sample);
      largest.Take(sample, index);
    });
    BlockSum grad;
    grad.Load(tile + bin * kBlockChannels);
    for_each_sample([&](const Tap* y, const Tap* x, int32_t index) HWY_ATTR {
      BlockSum selected;
      if (!largest.Select(index, grad, selected)) return;
      for (int64_t v = 0; v < 2; ++v) {
        float* const row = band.Row(y[v].index);
        for (int64_t u = 0; u < 2; ++u) {
          AddToBlock(selected, y[v].weight * x[u].weight, row + int64_t{x[u].index} * kBlockChannels);
        }
      }
    });
  }
}

// Gives the gradient of each bin to its largest weighted pixel, channel by channel. Of equal ones, the first pixel of
// the plane gets it, with the largest weight. `pixels` is [height * width][16].
void AddLargestPixel(const UprightRoi& roi, const RoiPooling& how, const float* tile, const float* pixels,
                     int64_t width, const BlockBand& band) {
  for (int64_t bin = 0; bin < how.rows * how.columns; ++bin) {
    const int64_t by = bin / how.columns, bx = bin % how.columns;
    const int32_t y_begin = roi.rows.Begin(by), y_end = roi.rows.Begin(by + 1);
    const int32_t x_begin = roi.columns.Begin(bx), x_end = roi.columns.Begin(bx + 1);
    // Pixels are pairs of taps: that with the largest weight, and that with the smallest.
    const auto for_each_candidate = [&](const auto& visit) HWY_ATTR {
      int32_t index = 0;
      for (int32_t y = y_begin; y < y_end; y += 2) {
        for (int32_t x = x_begin; x < x_end; x += 2) {
          for (int32_t k = 0; k < (roi.differ ? 2 : 1); ++k) {
            const Tap &down = roi.rows.taps[y + k], &across = roi.columns.taps[x + k];
            visit(down.index, across.index, down.weight * across.weight, index++);
          }
        }
      }
    };
    const bool zero = roi.rows.Marked(by) || roi.columns.Marked(bx);  // a pixel of weight 0 counts as 0
    LargestBlock largest(zero ? 0.0f : -std::numeric_limits<float>::infinity());
    for_each_candidate([&](int64_t y, int64_t x, float weight, int32_t index) HWY_ATTR {
      BlockSum pixel;
      pixel.Load(pixels + (y * width + x) * kBlockChannels);
      pixel.Scale(weight);
      largest.Take(pixel, index);
    });
    BlockSum grad;
    grad.Load(tile + bin * kBlockChannels);
    for_each_candidate([&](int64_t y, int64_t x, float weight, int32_t index) HWY_ATTR {
      BlockSum selected;
      if (largest.Select(index, grad, selected)) AddToBlock(selected, weight, band.Row(y) + x * kBlockChannels);
    });
  }
}

// Fills `order` with the boxes of a level, of one image after the other. Those of image n are at [begins[n],
// begins[n + 1]).
template <class T>
void OrderByImage(const UprightRois<T>& rois, int64_t count, int32_t level, int64_t images, int64_t* order,
                  int64_t* begins) {
  const auto for_each = [&](const auto& visit) {
    for (int64_t r = 0; r < count; ++r) {
      if (rois.Level(r) == level) visit(r, begins[rois.Image(r)], begins[rois.Image(r) + 1]);
    }
  };
  std::fill_n(begins, images + 1, int64_t{0});
  for_each([](int64_t, int64_t&, int64_t& end) { ++end; });
  for (int64_t n = 0; n < images; ++n) begins[n + 1] += begins[n];
  for_each([&](int64_t r, int64_t& begin, int64_t&) { order[begin++] = r; });
  for (int64_t n = images; n > 0; --n) begins[n] = begins[n - 1];
  begins[0] = 0;
}

// All boxes of a call, and which of them a level has (OrderByImage).
struct UprightBoxes {
  const UprightTable& table;
  const RowRange* ranges;
  const int64_t *order, *image_begin;
};

template <class T>
Status PoolLevelBackward(const Context& context, const RoiLevel<T>& input, int64_t images, int64_t channels,
                         const UprightBoxes& boxes, const RoiPooling& how, const T* grad_output, T* grad_input) {
  const int64_t bins = how.rows * how.columns, pixels = input.height * input.width;
  // In mode max the block of an image is copied for each band, so an image is one band.
  const BandSplit split = BandSplit::Of(images, channels, input.height, input.width, how.average ? 0 : 1);
  const int64_t scratch = (bins + (how.average ? 0 : pixels)) * kBlockChannels;
  return ScatterByBands(context, split, scratch, grad_input, [&](float* tile, const BlockBand& band) {
    float* const copy = tile + bins * kBlockChannels;
    const int64_t first = band.block * kBlockChannels, held = std::min(kBlockChannels, channels - first);
    if (!how.average) {
      InterleaveChannels(input.data + (band.image * channels + first) * pixels, held, pixels, pixels, copy);
    }
    for (int64_t i = boxes.image_begin[band.image]; i < boxes.image_begin[band.image + 1]; ++i) {
      const int64_t r = boxes.order[i];
      const UprightRoi& roi = boxes.table[r];
      if (!band.Meets(boxes.ranges[r].first, boxes.ranges[r].last)) continue;
      InterleaveChannels(grad_output + (r * channels + first) * bins, held, bins, bins, tile);
      if (how.average) {
        AddAverage(roi, how, tile, band);
      } else if (how.corners) {
        AddLargestPixel(roi, how, tile, copy, input.width, band);
      } else {
        AddMaximum(roi, how, tile, copy, input.width, band);
      }
    }
  });
}

template <class T>
Status PoolUprightBackward(const Context& context, std::span<const RoiLevel<T>> levels, int64_t images,
                           int64_t channels, int64_t count, const UprightRois<T>& rois, const RoiPooling& how,
                           const T* grad_output, T* grad_input) {
  POLYOP_RETURN_IF_ERROR(CheckLevels<T>(levels));
  if (images * channels == 0) return Status::Ok();
  UprightTable table;
  POLYOP_RETURN_IF_ERROR(table.Fill<T>(context, levels, count, rois, how, /*pad=*/false));
  const Scratch<RowRange> ranges = context.Allocate<RowRange>(count);
  const Scratch<int64_t> order = context.Allocate<int64_t>(count), image_begin = context.Allocate<int64_t>(images + 1);
  if (!ranges || !order || !image_begin) return Internal("out of memory: ", count, " rois");
  for (int64_t r = 0; r < count; ++r) ranges[r] = RowRange::Of(table[r].rows, how.rows);
  const UprightBoxes boxes{table, ranges.data(), order.data(), image_begin.data()};
  for (size_t l = 0; l < levels.size(); ++l) {
    const int64_t size = images * channels * levels[l].height * levels[l].width;
    if (size == 0) continue;
    OrderByImage(rois, count, static_cast<int32_t>(l), images, order.data(), image_begin.data());
    POLYOP_RETURN_IF_ERROR(
        PoolLevelBackward(context, levels[l], images, channels, boxes, how, grad_output, grad_input));
    grad_input += size;
  }
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_SIMD_TABLES(PoolUprightBackward, PoolUprightBackward);

template <class T>
Status PoolRoisBackward(const Context& context, std::span<const RoiLevel<T>> levels, int64_t images, int64_t channels,
                        int64_t count, const UprightRois<T>& rois, const RoiPooling& how, const T* grad_output,
                        T* grad_input) {
  return POLYOP_SIMD(PoolUprightBackward, T)(context, levels, images, channels, count, rois, how, grad_output,
                                             grad_input);
}
POLYOP_FOR_FLOATS(PoolRoisBackward);
}  // namespace polyop
#endif
