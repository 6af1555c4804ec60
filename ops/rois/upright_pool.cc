// SPDX-License-Identifier: Apache-2.0
// Pooling of upright RoIs. The taps of every RoI, the rows and columns of pixels of its bins with their weights, are
// the same for all channels and are found first (upright_table.h). Then blocks of 16 channels of an image are copied to
// adjacent memory, so that a pixel of a block is one or a few vectors, and RoIs are pooled from the copy in the order
// of their positions, so that neighbours read what is in the cache (pool_by_blocks-inl.h). An item of the parallel loop
// is a RoI with the blocks that are pooled together. Its result is a tile [block][bin][16], which is transposed to the
// output.
#include "ops/rois/upright_pool.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rois/upright_pool.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/rois/pool_by_blocks-inl.h"
#include "ops/rois/upright_maximum-inl.h"
#include "ops/rois/upright_table.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

inline double Middle(const RoiAxis& axis, int64_t bins) {
  return axis.start + axis.bin * static_cast<double>(bins) / 2;
}

// Averages kBlocks blocks, which are `block_stride` elements apart, to tile [kBlocks][rows][columns][16].
template <int64_t kBlocks, class Element>
void PoolAverage(const UprightRoi& roi, const Element* block, int64_t block_stride, int64_t width, int64_t rows,
                 int64_t columns, float* tile) {
  const int64_t tile_stride = rows * columns * kBlockChannels;
  for (int64_t by = 0; by < rows; ++by) {
    for (int64_t bx = 0; bx < columns; ++bx) {
      BlockSum sum[kBlocks];
      for (BlockSum& s : sum) s.Fill(0);
      for (int32_t ty = roi.rows.begin[by]; ty < roi.rows.begin[by + 1]; ++ty) {
        const Element* const row = block + roi.rows.taps[ty].index * width * kBlockChannels;
        BlockSum across[kBlocks];
        for (BlockSum& s : across) s.Fill(0);
        for (int32_t tx = roi.columns.begin[bx]; tx < roi.columns.begin[bx + 1]; ++tx) {
          const Tap& tap = roi.columns.taps[tx];
          const Element* const pixel = row + tap.index * kBlockChannels;
          for (int64_t b = 0; b < kBlocks; ++b) across[b].Add(pixel + b * block_stride, tap.weight);
        }
        for (int64_t b = 0; b < kBlocks; ++b) sum[b].Add(across[b], roi.rows.taps[ty].weight);
      }
      for (int64_t b = 0; b < kBlocks; ++b) sum[b].Store(roi.scale, tile + b * tile_stride);
      tile += kBlockChannels;
    }
  }
}

// PoolAverage for a RoI with kFour taps per bin and axis.
template <int64_t kBlocks, class Element>
void PoolAverageOfFour(const UprightRoi& roi, const Element* block, int64_t block_stride, int64_t width, int64_t rows,
                       int64_t columns, float* tile) {
  const int64_t tile_stride = rows * columns * kBlockChannels;
  for (int64_t by = 0; by < rows; ++by) {
    const Tap* const y = roi.rows.taps + by * kFour;
    const Element* row[kFour];
    for (int64_t t = 0; t < kFour; ++t) row[t] = block + y[t].index * width * kBlockChannels;
    for (int64_t bx = 0; bx < columns; ++bx) {
      const Tap* const x = roi.columns.taps + bx * kFour;
      for (int64_t b = 0; b < kBlocks; ++b) {
        BlockSum sum;
        sum.Fill(0);
        for (int64_t t = 0; t < kFour; ++t) {
          BlockSum across;
          across.Fill(0);
          for (int64_t u = 0; u < kFour; ++u) {
            across.Add(row[t] + b * block_stride + x[u].index * kBlockChannels, x[u].weight);
          }
          sum.Add(across, y[t].weight);
        }
        sum.Store(roi.scale, tile + b * tile_stride);
      }
      tile += kBlockChannels;
    }
  }
}

template <int64_t kBlocks, class Element>
auto PoolerOf(const UprightRoi& roi, const RoiPooling& how) {
  if (how.average) return roi.four ? PoolAverageOfFour<kBlocks, Element> : PoolAverage<kBlocks, Element>;
  if (!how.corners) return PoolSamples<kBlocks, Element>;
  if (roi.four)
    return roi.differ ? PoolCorners<true, kFour, kBlocks, Element> : PoolCorners<false, kFour, kBlocks, Element>;
  return roi.differ ? PoolCorners<true, 0, kBlocks, Element> : PoolCorners<false, 0, kBlocks, Element>;
}

template <class T, class R>
Status PoolBoxes(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels, int64_t count,
                 const UprightRois<R>& rois, const RoiPooling& how, T* output, const Requantize<T>& codes) {
  const int64_t rows = how.rows, columns = how.columns, bins = rows * columns;
  if (count * channels * bins == 0) return Status::Ok();
  POLYOP_RETURN_IF_ERROR(CheckLevels(levels));

  UprightTable table;
  POLYOP_RETURN_IF_ERROR(table.Fill(context, levels, count, rois, how, /*pad=*/true));
  const Scratch<RoiSortKey> order = context.Allocate<RoiSortKey>(count);
  if (!order) return Internal("out of memory: ", count, " rois");
  for (int64_t r = 0; r < count; ++r) {
    order[r] = {rois.Image(r), rois.Level(r), MortonCode(Middle(table[r].y, rows), Middle(table[r].x, columns)), r};
  }
  std::sort(order.data(), order.data() + count);

  const auto all = [](int64_t, int64_t last) { return last; };
  using Element = BlockElement<T>;
  const auto pool = [&](int64_t i, const Element* pixels, int64_t stride, int64_t together, float* tile) {
    const int64_t width = levels[static_cast<size_t>(order[i].level)].width;
    const UprightRoi& roi = table[order[i].roi];
    (together == 1 ? PoolerOf<1, Element>(roi, how) : PoolerOf<kPooledBlocks, Element>(roi, how))(
        roi, pixels, stride, width, rows, columns, tile);
  };
  return PoolByBlocks(context, levels, channels, {order.data(), static_cast<size_t>(count)}, bins, all, pool, output,
                      codes);
}

template <class T>
Status PoolUprightRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels, int64_t count,
                       const UprightRois<T>& rois, const RoiPooling& how, T* output) {
  return PoolBoxes(context, levels, channels, count, rois, how, output, {});
}

Status PoolQuantized(const Context& context, const RoiLevel<Q8>& level, int64_t channels, int64_t count,
                     const UprightRois<float>& rois, const RoiPooling& how, const Requantize<Q8>& codes, Q8* output) {
  return PoolBoxes<Q8>(context, {&level, 1}, channels, count, rois, how, output, codes);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_SIMD_TABLES(PoolUpright, PoolUprightRois);

template <class T>
Status PoolRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels, int64_t count,
                const UprightRois<T>& rois, const RoiPooling& how, T* output) {
  return POLYOP_SIMD(PoolUpright, T)(context, levels, channels, count, rois, how, output);
}
POLYOP_FOR_FLOATS(PoolRois);

HWY_EXPORT(PoolQuantized);
Status PoolQuantizedRois(const Context& context, const RoiLevel<Q8>& level, int64_t channels, int64_t count,
                         const UprightRois<float>& rois, const RoiPooling& how, const Requantize<Q8>& codes,
                         Q8* output) {
  return HWY_DYNAMIC_DISPATCH(PoolQuantized)(context, level, channels, count, rois, how, codes, output);
}
}  // namespace polyop
#endif
