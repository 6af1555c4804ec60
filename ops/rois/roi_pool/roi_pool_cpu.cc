// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <span>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rois/roi_pool/roi_pool_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"
#include "ops/rois/batch_indices.h"
#include "ops/rois/roi_pool/roi_pool.h"
#include "ops/rois/roi_pool/roi_pool_bins.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using IndexTag = hn::RebindToSigned<BlockTag>;

// The largest pixels of 16 channels and their indices.
struct LargestPixels {
  hn::Vec<BlockTag> value[kBlockVectors];
  hn::Vec<IndexTag> at[kBlockVectors];

  LargestPixels() {
    for (int64_t i = 0; i < kBlockVectors; ++i) {
      value[i] = hn::Set(BlockTag(), -std::numeric_limits<float>::infinity());
      at[i] = hn::Set(IndexTag(), -1);
    }
  }
  HWY_INLINE void Take(const float* pixel, int32_t index) {
    const auto candidate_index = hn::Set(IndexTag(), index);
    for (int64_t i = 0; i < kBlockVectors; ++i) {
      const auto candidate = hn::LoadU(BlockTag(), pixel + i * kBlockLanes);
      const auto larger = hn::Gt(candidate, value[i]);
      value[i] = hn::IfThenElse(larger, candidate, value[i]);
      at[i] = hn::IfThenElse(hn::RebindMask(IndexTag(), larger), candidate_index, at[i]);
    }
  }
  HWY_INLINE void Store(float* values, int32_t* indices) const {
    for (int64_t i = 0; i < kBlockVectors; ++i) {
      const auto none = hn::RebindMask(BlockTag(), hn::Lt(at[i], hn::Zero(IndexTag())));
      hn::StoreU(hn::IfThenZeroElse(none, value[i]), BlockTag(), values + i * kBlockLanes);
      hn::StoreU(at[i], IndexTag(), indices + i * kBlockLanes);
    }
  }
};

// Pools `rows` rows of the bins of a box, for 16 channels. `columns` are the pixels of each bin of a row.
void PoolRows(const RoiPoolAxis& y, int64_t first, int64_t rows, int64_t height, int64_t width,
              std::span<const PixelRange> columns, const float* block, float* values, int32_t* indices) {
  for (int64_t bin = first; bin < first + rows; ++bin) {
    const PixelRange lines = y.Bin(bin, height);
    for (const PixelRange& column : columns) {
      LargestPixels largest;
      for (int64_t line = lines.begin; line < lines.end; ++line) {
        for (int64_t x = column.begin; x < column.end; ++x) {
          const int64_t pixel = line * width + x;
          largest.Take(block + pixel * kBlockChannels, static_cast<int32_t>(pixel));
        }
      }
      largest.Store(values, indices);
      values += kBlockChannels;
      indices += kBlockChannels;
    }
  }
}

// Number of bins computed at a time, so that their values and indices stay in L2.
constexpr int64_t kBinsAtOnce = 1024;

// Visits all boxes for one block of channels before the next block, which keeps the block in the cache.
template <class T>
Status RoiPoolCpu(const RoiPool& op, const Context& context, Tensor<const T, 4> input, Tensor<const T, 2> rois,
                  Tensor<T, 4> output, Tensor<int32_t, 4> argmax) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  const int64_t channels = input.dim(1), width = input.dim(3), count = rois.dim(0);
  const int64_t height = width > 0 ? input.dim(2) : 0;  // an image of width 0 may have billions of rows
  const int64_t rows = op.output_height, columns = op.output_width, bins = rows * columns;
  const int64_t rows_at_once = std::clamp<int64_t>(kBinsAtOnce / columns, 1, rows);
  const int64_t tile_size = rows_at_once * columns * kBlockChannels;
  const int64_t blocks = ChannelBlocks::BlocksFor(channels), items = blocks * count;
  const int64_t grain = GrainFor(static_cast<double>(bins) * 50), tasks = Context::NumTasks(items, grain);
  const auto streams = [&](size_t size) {  // only if a box is contiguous in the output
    return rows_at_once == rows && ShouldStream(bins * kBlockChannels * static_cast<int64_t>(size), items);
  };
  const bool stream_values = streams(sizeof(T)), stream_indices = streams(sizeof(int32_t));
  const Scratch<float> copy =
      context.Allocate<float>(ChannelBlocks::ElementsFor(input.dim(0), channels, height * width));
  const Scratch<float> values =
      context.Allocate<float>(tasks * 2 * tile_size);  // two tiles; the second one is the source of streaming stores
  const Scratch<int32_t> indices = context.Allocate<int32_t>(tasks * 2 * tile_size);
  const Scratch<PixelRange> ranges = context.Allocate<PixelRange>(tasks * columns);
  if (!copy || !values || !indices || !ranges) return Internal("out of memory: a copy of ", ToString(input.shape()));
  const ChannelBlocks pixels =
      ToChannelBlocks(context, input.data(), input.dim(0), channels, height * width, copy.data());

  context.ParallelFor(items, grain, [&](int64_t task, int64_t begin, int64_t end) {
    float* const tile = values.data() + task * 2 * tile_size;
    int32_t* const index_tile = indices.data() + task * 2 * tile_size;
    const std::span<PixelRange> across(ranges.data() + task * columns, static_cast<size_t>(columns));
    for (int64_t item = begin; item < end; ++item) {
      const int64_t b = item / count, r = item % count, first = b * kBlockChannels;
      const int64_t held = std::min(kBlockChannels, channels - first);
      const T* const row = rois.data() + 5 * r;
      const RoiPoolBox box = RoiPoolBox::Of(op, row);
      const float* const block = pixels.Block(ImageOf(ToFloat(row[0])), b);
      for (int64_t x = 0; x < columns; ++x) across[static_cast<size_t>(x)] = box.x.Bin(x, width);
      for (int64_t y = 0; y < rows; y += rows_at_once) {
        const int64_t rows_now = std::min(rows_at_once, rows - y), to = (r * channels + first) * bins + y * columns;
        PoolRows(box.y, y, rows_now, height, width, across, block, tile, index_tile);
        if (rows_now == rows) {
          WriteChannelRun(tile, tile + tile_size, bins, held, stream_values, output.data() + to);
          WriteChannelRun(index_tile, index_tile + tile_size, bins, held, stream_indices, argmax.data() + to);
        } else {
          WriteChannels(tile, rows_now * columns, held, bins, output.data() + to);
          WriteChannels(index_tile, rows_now * columns, held, bins, argmax.data() + to);
        }
      }
    }
    if (stream_values || stream_indices) hwy::FlushStream();
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(RoiPool, RoiPoolCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
