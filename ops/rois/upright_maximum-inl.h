// SPDX-License-Identifier: Apache-2.0
// Max pooling of upright boxes, of samples or of their weighted pixels. Compiled once per instruction set; include it
// from a kernel file.
#if defined(POLYOP_OPS_ROIS_UPRIGHT_MAXIMUM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_ROIS_UPRIGHT_MAXIMUM_INL_H_
#undef POLYOP_OPS_ROIS_UPRIGHT_MAXIMUM_INL_H_
#else
#define POLYOP_OPS_ROIS_UPRIGHT_MAXIMUM_INL_H_
#endif

#include <limits>

#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/rois/upright_taps.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

// Pools the bins of a RoI to tile [kBlocks][rows][columns][16]. pool(y, y_end, x, x_end, largest) updates the maxima of
// kBlocks blocks with the taps [y, y_end) of rows and [x, x_end) of columns.
template <int64_t kBlocks, class Pool>
HWY_INLINE void PoolMaxima(const UprightRoi& roi, int64_t rows, int64_t columns, float* tile, const Pool& pool) {
  const int64_t tile_stride = rows * columns * kBlockChannels;
  const bool any = roi.y.samples > 0 && roi.x.samples > 0;
  for (int64_t by = 0; by < rows; ++by) {
    for (int64_t bx = 0; bx < columns; ++bx) {
      const bool zero = !any || roi.rows.Marked(by) || roi.columns.Marked(bx);
      BlockSum largest[kBlocks];
      for (BlockSum& l : largest) l.Fill(zero ? 0.0f : kNone);
      pool(roi.rows.taps + roi.rows.Begin(by), roi.rows.taps + roi.rows.Begin(by + 1),
           roi.columns.taps + roi.columns.Begin(bx), roi.columns.taps + roi.columns.Begin(bx + 1), largest);
      for (int64_t b = 0; b < kBlocks; ++b) {
        largest[b].ZeroWhere(kNone);
        largest[b].Store(1.0f, tile + b * tile_stride);
      }
      tile += kBlockChannels;
    }
  }
}

template <int64_t kBlocks, class Element>
void PoolSamples(const UprightRoi& roi, const Element* block, int64_t block_stride, int64_t width, int64_t rows,
                 int64_t columns, float* tile) {
  const auto pool = [=](const Tap* y, const Tap* y_end, const Tap* x_begin, const Tap* x_end,
                        BlockSum* largest) HWY_ATTR {
    for (; y < y_end; y += 2) {
      for (const Tap* x = x_begin; x < x_end; x += 2) {
        for (int64_t b = 0; b < kBlocks; ++b) {
          BlockSum sample;
          sample.Fill(0);
          for (int64_t dy = 0; dy < 2; ++dy) {
            const Element* const row = block + b * block_stride + y[dy].index * width * kBlockChannels;
            BlockSum across;
            across.Fill(0);
            for (int64_t dx = 0; dx < 2; ++dx) across.Add(row + x[dx].index * kBlockChannels, x[dx].weight);
            sample.Add(across, y[dy].weight);
          }
          largest[b].Max(sample);
        }
      }
    }
  };
  PoolMaxima<kBlocks>(roi, rows, columns, tile, pool);
}

// Pools the maxima of weighted pixels, weighted along x first. If a pixel's weights differ (kDiffer), the smallest one
// gives the maximum of negative pixels. kPixels, unless 0, is the number of pixels per bin and axis.
template <bool kDiffer, int64_t kPixels, int64_t kBlocks, class Element>
void PoolCorners(const UprightRoi& roi, const Element* block, int64_t block_stride, int64_t width, int64_t rows,
                 int64_t columns, float* tile) {
  constexpr int64_t kWeights = kDiffer ? 2 : 1;
  const auto pool = [=](const Tap* y, const Tap* y_end, const Tap* x, const Tap* x_end, BlockSum* largest) HWY_ATTR {
    const int64_t down = kPixels > 0 ? kPixels : (y_end - y) / 2, across = kPixels > 0 ? kPixels : (x_end - x) / 2;
    for (int64_t t = 0; t < down; ++t) {
      for (int64_t b = 0; b < kBlocks; ++b) {
        const Element* const row = block + b * block_stride + y[2 * t].index * width * kBlockChannels;
        BlockSum of_row[kWeights];
        for (BlockSum& m : of_row) m.Fill(kNone);
        for (int64_t u = 0; u < across; ++u) {
          BlockSum pixel;
          pixel.Load(row + x[2 * u].index * kBlockChannels);
          for (int64_t k = 0; k < kWeights; ++k) of_row[k].Max(pixel, x[2 * u + k].weight);
        }
        for (int64_t k = 0; k < kWeights; ++k) largest[b].Max(of_row[k], y[2 * t + k].weight);
      }
    }
  };
  PoolMaxima<kBlocks>(roi, rows, columns, tile, pool);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
