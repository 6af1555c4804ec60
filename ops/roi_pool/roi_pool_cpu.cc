#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/roi_pool/roi_pool_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/rois/rois.h"
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/roi_pool/roi_pool.h"
#include "ops/roi_pool/roi_pool_bins.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using IndexTag = hn::RebindToSigned<BlockTag>;

// The largest pixels of 16 channels, and where they lie.
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
    const auto here = hn::Set(IndexTag(), index);
    for (int64_t i = 0; i < kBlockVectors; ++i) {
      const auto candidate = hn::LoadU(BlockTag(), pixel + i * kBlockLanes);
      const auto larger = hn::Gt(candidate, value[i]);
      value[i] = hn::IfThenElse(larger, candidate, value[i]);
      at[i] = hn::IfThenElse(hn::RebindMask(IndexTag(), larger), here, at[i]);
    }
  }
  HWY_INLINE void Store(float* values, int32_t* places) const {
    for (int64_t i = 0; i < kBlockVectors; ++i) {
      const auto none = hn::RebindMask(BlockTag(), hn::Lt(at[i], hn::Zero(IndexTag())));
      hn::StoreU(hn::IfThenZeroElse(none, value[i]), BlockTag(), values + i * kBlockLanes);
      hn::StoreU(at[i], IndexTag(), places + i * kBlockLanes);
    }
  }
};

// One row of a box's bins, of 16 channels.
void PoolRow(const float* block, int64_t width, const PixelRange& rows, const PixelRange* columns, int64_t bins,
             float* values, int32_t* places) {
  for (int64_t bin = 0; bin < bins; ++bin) {
    LargestPixels largest;
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      for (int64_t x = columns[bin].begin; x < columns[bin].end; ++x) {
        const int64_t pixel = y * width + x;
        largest.Take(block + pixel * kBlockChannels, static_cast<int32_t>(pixel));
      }
    }
    largest.Store(values + bin * kBlockChannels, places + bin * kBlockChannels);
  }
}

// Box by box of one block of channels, then of the next: the block stays in the cache.
template <class T>
Status RoiPoolCpu(const RoiPool& op, const Context& context, Tensor<const T, 4> input, Tensor<const T, 2> rois,
                  Tensor<T, 4> output, Tensor<int32_t, 4> argmax) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  const int64_t channels = input.dim(1), height = input.dim(2), width = input.dim(3), count = rois.dim(0);
  const int64_t columns = op.output_width, bins = op.output_height * columns;
  const int64_t blocks = ChannelBlocks::BlocksFor(channels), items = blocks * count;
  const int64_t grain = GrainFor(static_cast<double>(bins) * 50), tasks = Context::NumTasks(items, grain);
  const Scratch<float> copy =
      context.Allocate<float>(ChannelBlocks::ElementsFor(input.dim(0), channels, height * width));
  const Scratch<float> values = context.Allocate<float>(tasks * columns * kBlockChannels);
  const Scratch<int32_t> places = context.Allocate<int32_t>(tasks * columns * kBlockChannels);
  const Scratch<PixelRange> ranges = context.Allocate<PixelRange>(tasks * columns);
  if (!copy || !values || !places || !ranges) return Internal("out of memory: a copy of ", ToString(input.shape()));
  const ChannelBlocks pixels =
      ToChannelBlocks(context, input.data(), input.dim(0), channels, height * width, copy.data());

  context.ParallelFor(items, grain, [&](int64_t task, int64_t begin, int64_t end) {
    float* const tile = values.data() + task * columns * kBlockChannels;
    int32_t* const where = places.data() + task * columns * kBlockChannels;
    PixelRange* const across = ranges.data() + task * columns;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t b = item / count, r = item % count, first = b * kBlockChannels;
      const int64_t held = std::min(kBlockChannels, channels - first);
      const T* const row = rois.data() + 5 * r;
      const RoiPoolBox box = RoiPoolBox::Of(op, row);
      const float* const block = pixels.Block(static_cast<int64_t>(ToFloat(row[0])), b);
      for (int64_t x = 0; x < columns; ++x) across[x] = box.x.Bin(x, width);
      for (int64_t y = 0; y < op.output_height; ++y) {
        PoolRow(block, width, box.y.Bin(y, height), across, columns, tile, where);
        const int64_t to = (r * channels + first) * bins + y * columns;
        WriteChannels(tile, columns, held, bins, output.data() + to);
        for (int64_t c = 0; c < held; ++c) {
          for (int64_t x = 0; x < columns; ++x) argmax[to + c * bins + x] = where[x * kBlockChannels + c];
        }
      }
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(RoiPool, RoiPoolF32, RoiPoolCpu<float>);
POLYOP_CPU_KERNEL(RoiPool, RoiPoolF16, RoiPoolCpu<Half>);
POLYOP_CPU_KERNEL(RoiPool, RoiPoolBF16, RoiPoolCpu<BFloat16>);
}  // namespace polyop
#endif
