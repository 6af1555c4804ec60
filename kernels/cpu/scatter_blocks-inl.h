// SPDX-License-Identifier: Apache-2.0
// Scatters sums to the pixels of an image, for the gradients of operators that sample. A task owns some rows of one
// block of 16 channels, accumulates their sums in separate channels-last memory, and writes them once. No two threads
// write the same address, and results do not depend on the number of threads. Compiled once per instruction set;
// include it from a kernel file.
#if defined(POLYOP_KERNELS_CPU_SCATTER_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_SCATTER_BLOCKS_INL_H_
#undef POLYOP_KERNELS_CPU_SCATTER_BLOCKS_INL_H_
#else
#define POLYOP_KERNELS_CPU_SCATTER_BLOCKS_INL_H_
#endif

#include <algorithm>

#include "core/context.h"
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Rows [begin, end) of one block of channels of one image, and the sums of their pixels, [rows][width][16].
struct BlockBand {
  int64_t image, block, begin, end, width;
  float* sums;

  bool HasRow(int64_t row) const { return row >= begin && row < end; }
  /// Returns whether a row of [first, last] belongs to the band.
  bool Meets(int64_t first, int64_t last) const { return first < end && last >= begin; }
  /// Returns the sums of a row of the band; pixel x is at Row(y) + x * 16.
  float* Row(int64_t row) const { return sums + (row - begin) * width * kBlockChannels; }
};

/// The division of images [images, channels, height, width] into bands.
struct BandSplit {
  int64_t images, channels, height, width;
  int64_t bands;  // per image
  int64_t rows;   // per band; the last may have fewer

  /// Chooses bands whose sums fit in the L2 cache, and enough of them for several threads; or `bands` of them, unless
  /// 0.
  static BandSplit Of(int64_t images, int64_t channels, int64_t height, int64_t width, int64_t bands = 0) {
    constexpr int64_t kBytes = 512 << 10, kEnoughTasks = 16, kMinRows = 8;
    const int64_t row_bytes = width * kBlockChannels * static_cast<int64_t>(sizeof(float));
    const int64_t planes = images * ChannelBlocks::BlocksFor(channels);
    int64_t rows = height;
    if (bands > 0) {
      rows = (height + bands - 1) / bands;
    } else {
      rows = std::min(rows, std::max<int64_t>(kBytes / std::max<int64_t>(row_bytes, 1), 1));
      if (planes < kEnoughTasks) {
        const int64_t enough = (kEnoughTasks + planes - 1) / std::max<int64_t>(planes, 1);
        rows = std::min(rows, std::max((height + enough - 1) / enough, std::min(height, kMinRows)));
      }
    }
    rows = std::max<int64_t>(rows, 1);
    return {images, channels, height, width, (height + rows - 1) / rows, rows};
  }
  int64_t count() const { return images * ChannelBlocks::BlocksFor(channels) * bands; }
};

/// Calls add(scratch, band) for every band, whose sums are initially 0, and writes the sums to `to` [images, channels,
/// height, width]. `scratch` points to `scratch_floats` floats, aligned to 64 bytes, that no other running call uses.
template <class T, class Add>
Status ScatterByBands(const Context& context, const BandSplit& split, int64_t scratch_floats, T* to, const Add& add) {
  const int64_t floats = split.rows * split.width * kBlockChannels;
  const int64_t blocks = ChannelBlocks::BlocksFor(split.channels), pixels = split.height * split.width;
  const auto scatter = [&](float* sums, int64_t first, int64_t last) {
    for (int64_t item = first; item < last; ++item) {
      const int64_t band_index = item % split.bands, plane = item / split.bands;
      const int64_t begin = band_index * split.rows, end = std::min(split.height, begin + split.rows);
      const BlockBand band{plane / blocks, plane % blocks, begin, end, split.width, sums};
      const int64_t held = (end - begin) * split.width, channel = band.block * kBlockChannels;
      std::fill_n(band.sums, held * kBlockChannels, 0.0f);
      add(sums + floats, band);
      WriteChannels(band.sums, held, std::min(kBlockChannels, split.channels - channel), pixels,
                    to + (band.image * split.channels + channel) * pixels + begin * split.width);
    }
  };
  if (context.ParallelForWithScratch<float>(split.count(), 1, floats + scratch_floats, scatter)) return Status::Ok();
  return Internal("out of memory: sums of ", floats, " elements");
}

/// Adds weight * block to to[0, 16).
HWY_INLINE void AddToBlock(const BlockSum& block, float weight, float* to) {
  const auto w = hn::Set(BlockTag(), weight);
  for (int64_t i = 0; i < kBlockVectors; ++i) {
    float* const at = to + i * kBlockLanes;
    hn::StoreU(hn::MulAdd(w, block.v[i], hn::LoadU(BlockTag(), at)), BlockTag(), at);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
