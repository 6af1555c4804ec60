// SPDX-License-Identifier: Apache-2.0
// The outer loops of RoI pooling on the CPU: the order in which RoIs are visited, the blocks of channels that are
// copied for them, and how results are written. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_ROIS_POOL_BY_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_ROIS_POOL_BY_BLOCKS_INL_H_
#undef POLYOP_OPS_ROIS_POOL_BY_BLOCKS_INL_H_
#else
#define POLYOP_OPS_ROIS_POOL_BY_BLOCKS_INL_H_
#endif

#include <algorithm>
#include <span>

#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"
#include "ops/rois/roi_grid.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Returns the index of the cell of 16 pixels at a coordinate.
inline uint32_t CellOf(double pixel) {
  const double cell = pixel / 16;
  return cell > 0 ? static_cast<uint32_t>(std::min(cell, 65535.0)) : 0;  // 0 for NaN
}

// Returns the Morton code of a position's cell: consecutive codes are near each other in the image.
inline uint64_t MortonCode(double y, double x) {
  const uint32_t row = CellOf(y), column = CellOf(x);
  uint64_t code = 0;
  for (int bit = 0; bit < 16; ++bit) {
    code |= uint64_t{row >> bit & 1} << (2 * bit + 1) | uint64_t{column >> bit & 1} << (2 * bit);
  }
  return code;
}

// Sorting by this key makes RoIs that are near each other consecutive, so that they read the same part of the cache.
struct RoiSortKey {
  int64_t image;
  int32_t level;
  uint64_t morton;
  int64_t roi;

  bool SameImage(const RoiSortKey& other) const { return image == other.image && level == other.level; }
  auto operator<=>(const RoiSortKey&) const = default;
};

// Number of blocks that are summed at a time, so that each tap is found once for all of them; limited by registers.
constexpr int64_t kPooledBlocks = kBlockVectors == 1 ? 4 : kBlockVectors == 2 ? 2 : 1;

// Maximum bytes of blocks that are pooled together. If they do not stay in the L2 cache, one at a time is faster.
constexpr int64_t kMaxPooledBytes = 1 << 20;

// Returns how many blocks of `block_bytes` of an image are copied and pooled at a time: few enough to stay in a shared
// cache, and enough work for all cores.
inline int64_t BlocksAtOnce(int64_t blocks, int64_t block_bytes) {
  constexpr int64_t kBytes = 16 << 20;
  const int64_t units = kBytes / std::max<int64_t>(block_bytes, 1) / kPooledBlocks;
  return std::min(blocks, std::max<int64_t>(units, 1) * kPooledBlocks);
}

/// Pools RoIs image by image and level by level to output [count, channels, bins]. Blocks of the image's channels are
/// copied, then pooled while they are in the cache, all RoIs of a block before the next block:
///  - prepare(first, last) prepares RoIs order[first], … and returns the end of the range that is ready;
///  - pool(i, blocks, block_stride, blocks_together, tile) pools RoI order[i] from 1 or kPooledBlocks blocks of
///    BlockElement<T> to tile [blocks][bins][16].
/// `codes` states the elements of quantized images and results.
template <class T, class Prepare, class Pool>
Status PoolByBlocks(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels,
                    std::span<const RoiSortKey> order, int64_t bins, const Prepare& prepare, const Pool& pool,
                    T* output, const Requantize<T>& codes = {}) {
  const int64_t count = static_cast<int64_t>(order.size()), blocks = ChannelBlocks::BlocksFor(channels);
  const int64_t grain = GrainFor(static_cast<double>(bins) * 30);           // RoIs of one block
  const int64_t tasks = std::min(Context::kMaxTasks, count * blocks);       // maximum
  const int64_t tile_floats = (kPooledBlocks + 1) * bins * kBlockChannels;  // plus one to transpose into
  const bool stream =
      ShouldStream(bins * kBlockChannels * static_cast<int64_t>(sizeof(T)), count * channels / kBlockChannels);
  using Element = BlockElement<T>;
  constexpr auto kPixelBytes = static_cast<int64_t>(sizeof(Element)) * kBlockChannels;
  int64_t copied = 0;
  for (const RoiLevel<T>& level : levels) {
    const int64_t pixels = level.height * level.width;
    copied = std::max(copied, BlocksAtOnce(blocks, pixels * kPixelBytes) * pixels * kBlockChannels);
  }
  const Scratch<Element> copy = context.Allocate<Element>(copied);
  const Scratch<float> tiles = context.Allocate<float>(tasks * tile_floats);
  if (!copy || !tiles) return Internal("out of memory: scratch for ", count, " rois");

  for (int64_t run = 0, run_end = 0; run < count; run = run_end) {
    while (run_end < count && order[run_end].SameImage(order[run])) ++run_end;
    const RoiLevel<T>& level = levels[static_cast<size_t>(order[run].level)];
    const int64_t pixels = level.height * level.width, stride = pixels * kBlockChannels;
    const int64_t at_once = BlocksAtOnce(blocks, pixels * kPixelBytes);
    const int64_t unit = pixels * kPixelBytes * kPooledBlocks <= kMaxPooledBytes ? kPooledBlocks : 1;
    for (int64_t start = 0; start < blocks; start += at_once) {
      const int64_t some = std::min(at_once, blocks - start), units = (some + unit - 1) / unit;
      ToChannelBlocks(context, level.data + order[run].image * channels * pixels, 1, channels, pixels, copy.data(),
                      start, some, 0, codes);
      for (int64_t first = run, last = run; first < run_end; first = last) {
        last = prepare(first, run_end);
        const int64_t rois = last - first;
        context.ParallelFor(
            units * rois, std::max<int64_t>(grain / unit, 1), [&](int64_t task, int64_t begin, int64_t end) {
              float* const tile = tiles.data() + task * tile_floats;
              for (int64_t item = begin; item < end; ++item) {
                const int64_t i = first + item % rois, block = item / rois * unit;
                const int64_t now = std::min(unit, some - block), step = now == unit ? unit : 1;
                for (int64_t b = 0; b < now; b += step) {
                  pool(i, copy.data() + (block + b) * stride, stride, step, tile);
                  for (int64_t k = 0; k < step; ++k) {
                    const int64_t channel = (start + block + b + k) * kBlockChannels;
                    WriteChannelRun(tile + k * bins * kBlockChannels, tile + kPooledBlocks * bins * kBlockChannels,
                                    bins, std::min(kBlockChannels, channels - channel), stream,
                                    output + (order[i].roi * channels + channel) * bins, codes);
                  }
                }
              }
              if (stream) hwy::FlushStream();
            });
      }
    }
  }
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
