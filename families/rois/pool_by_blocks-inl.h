// The frame of pooling on the CPU: in which order regions are visited, which blocks of channels are copied for them,
// and how what they pool is written. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_FAMILIES_ROIS_POOL_BY_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_FAMILIES_ROIS_POOL_BY_BLOCKS_INL_H_
#undef POLYOP_FAMILIES_ROIS_POOL_BY_BLOCKS_INL_H_
#else
#define POLYOP_FAMILIES_ROIS_POOL_BY_BLOCKS_INL_H_
#endif

#include <algorithm>
#include <span>

#include "families/rois/roi_grid.h"
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Which cell of 16 pixels lies there.
inline uint32_t CellOf(double pixel) {
  const double cell = pixel / 16;
  return cell > 0 ? static_cast<uint32_t>(std::min(cell, 65535.0)) : 0;  // NaN: 0
}

// Morton's order of the cells: places that follow each other are near in the picture.
inline uint64_t PlaceOf(double y, double x) {
  const uint32_t row = CellOf(y), column = CellOf(x);
  uint64_t place = 0;
  for (int bit = 0; bit < 16; ++bit) {
    place |= uint64_t{row >> bit & 1} << (2 * bit + 1) | uint64_t{column >> bit & 1} << (2 * bit);
  }
  return place;
}

// Where a roi is pooled. Sorted, neighbours follow each other, and read the same part of the cache.
struct RoiPlace {
  int64_t picture;
  int32_t level;
  uint64_t place;
  int64_t roi;

  bool SamePicture(const RoiPlace& other) const { return picture == other.picture && level == other.level; }
  auto operator<=>(const RoiPlace&) const = default;
};

// Blocks whose averages are summed at a time, so that finding a tap is worth more: as registers allow.
constexpr int64_t kPooledBlocks = kBlockVectors == 1 ? 4 : kBlockVectors == 2 ? 2 : 1;

// Bytes of blocks that are pooled together: they stay in L2, or one after the other is faster.
constexpr int64_t kPooledTogether = 1 << 20;

// How many blocks of `block_bytes` of a picture are copied and pooled at a time: what stays in a cache that cores
// share, and is work enough for them.
inline int64_t BlocksAtOnce(int64_t blocks, int64_t block_bytes) {
  constexpr int64_t kBytes = 16 << 20;
  const int64_t units = kBytes / std::max<int64_t>(block_bytes, 1) / kPooledBlocks;
  return std::min(blocks, std::max<int64_t>(units, 1) * kPooledBlocks);
}

/// The rois of one picture of one level after the other. Blocks of its channels are copied, then pooled while the
/// cache holds them, all rois from one block before the next one:
///  - prepare(first, last) makes the rois order[first] … ready, and returns up to which it did;
///  - pool(i, blocks, block_stride, blocks_together, tile) pools roi order[i], from 1 or kPooledBlocks blocks of
///    BlockElement<T>, to tile [blocks][bins][16].
/// The output is [count, channels, bins].
template <class T, class Prepare, class Pool>
Status PoolByBlocks(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels,
                    std::span<const RoiPlace> order, int64_t bins, const Prepare& prepare, const Pool& pool,
                    T* output) {
  const int64_t count = static_cast<int64_t>(order.size()), blocks = ChannelBlocks::BlocksFor(channels);
  const int64_t grain = GrainFor(static_cast<double>(bins) * 30);           // rois of one block
  const int64_t tasks = std::min(Context::kMaxTasks, count * blocks);       // at most
  const int64_t tile_floats = (kPooledBlocks + 1) * bins * kBlockChannels;  // one more to transpose into
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
    while (run_end < count && order[run_end].SamePicture(order[run])) ++run_end;
    const RoiLevel<T>& level = levels[static_cast<size_t>(order[run].level)];
    const int64_t pixels = level.height * level.width, stride = pixels * kBlockChannels;
    const int64_t at_once = BlocksAtOnce(blocks, pixels * kPixelBytes);
    const int64_t unit = pixels * kPixelBytes * kPooledBlocks <= kPooledTogether ? kPooledBlocks : 1;
    for (int64_t start = 0; start < blocks; start += at_once) {
      const int64_t some = std::min(at_once, blocks - start), units = (some + unit - 1) / unit;
      ToChannelBlocks(context, level.data + order[run].picture * channels * pixels, 1, channels, pixels, copy.data(),
                      start, some);
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
                                    output + (order[i].roi * channels + channel) * bins);
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
