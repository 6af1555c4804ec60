// Pictures with the channels of a pixel side by side, in blocks of one cache line: what operators that sample
// at irregular places read from. One sample then is one vector load for 16 channels instead of 16 scattered
// ones. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_CORE_CHANNEL_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_CORE_CHANNEL_BLOCKS_INL_H_
#undef POLYOP_CORE_CHANNEL_BLOCKS_INL_H_
#else
#define POLYOP_CORE_CHANNEL_BLOCKS_INL_H_
#endif

#include "core/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kBlockChannels = 16;

/// The vectors that make up one block: one on AVX-512, two on AVX2, four on SSE4 and NEON.
using BlockTag = hn::CappedTag<float, kBlockChannels>;
constexpr int64_t kBlockLanes = static_cast<int64_t>(hn::MaxLanes(BlockTag()));
constexpr int64_t kBlockVectors = kBlockChannels / kBlockLanes;

/// Picture n, block b, pixel p, channel 16 b + c lies at ((n * blocks + b) * pixels + p) * 16 + c.
/// Channels beyond the last are 0.
struct ChannelBlocks {
  const float* data = nullptr;
  int64_t blocks = 0, pixels = 0;

  const float* Block(int64_t picture, int64_t block) const {
    return data + (picture * blocks + block) * pixels * kBlockChannels;
  }
  static int64_t BlocksFor(int64_t channels) { return (channels + kBlockChannels - 1) / kBlockChannels; }
  static int64_t FloatsFor(int64_t pictures, int64_t channels, int64_t pixels) {
    return pictures * BlocksFor(channels) * pixels * kBlockChannels;
  }
};

// Pixels [begin, end) of up to 16 channels. `from` is the first channel's plane.
template <class T>
void InterleaveChannels(const T* from, int64_t channels, int64_t pixels, int64_t begin, int64_t end, float* to) {
  constexpr int64_t kTile = 32;  // 2 KiB of the result: stays in L1 while the channels are visited in turn
  for (int64_t tile = begin; tile < end; tile += kTile) {
    const int64_t tile_end = std::min(end, tile + kTile);
    float* const target = to + tile * kBlockChannels;
    if (channels < kBlockChannels) std::fill_n(target, (tile_end - tile) * kBlockChannels, 0.0f);
    for (int64_t c = 0; c < channels; ++c) {
      const T* plane = from + c * pixels;
      for (int64_t p = tile; p < tile_end; ++p) target[(p - tile) * kBlockChannels + c] = ToFloat(plane[p]);
    }
  }
}

/// Copies input [N, C, pixels…] into `memory` of FloatsFor() floats.
template <class T>
ChannelBlocks ToChannelBlocks(const Context& context, const T* input, int64_t pictures, int64_t channels,
                              int64_t pixels, float* memory) {
  const ChannelBlocks result{memory, ChannelBlocks::BlocksFor(channels), pixels};
  constexpr int64_t kRun = 4096;  // pixels of one item
  const int64_t runs = (pixels + kRun - 1) / kRun;
  context.ParallelFor(pictures * result.blocks * runs, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t run = item % runs, plane = item / runs, block = plane % result.blocks,
                    picture = plane / result.blocks;
      const int64_t first = block * kBlockChannels;
      InterleaveChannels(input + (picture * channels + first) * pixels, std::min(kBlockChannels, channels - first),
                         pixels, run * kRun, std::min(pixels, (run + 1) * kRun),
                         memory + plane * pixels * kBlockChannels);
    }
  });
  return result;
}

/// A block of 16 channels in registers.
struct BlockSum {
  hn::Vec<BlockTag> v[kBlockVectors];

  HWY_INLINE void Fill(float value) {
    for (int64_t i = 0; i < kBlockVectors; ++i) v[i] = hn::Set(BlockTag(), value);
  }
  HWY_INLINE void Load(const float* from) {
    for (int64_t i = 0; i < kBlockVectors; ++i) v[i] = hn::LoadU(BlockTag(), from + i * kBlockLanes);
  }
  /// this += weight * pixel
  HWY_INLINE void Add(const float* pixel, float weight) {
    const auto w = hn::Set(BlockTag(), weight);
    for (int64_t i = 0; i < kBlockVectors; ++i)
      v[i] = hn::MulAdd(hn::LoadU(BlockTag(), pixel + i * kBlockLanes), w, v[i]);
  }
  /// this = this > other ? this : other, so that NaN in `other` is passed over
  HWY_INLINE void Max(const BlockSum& other) {
    for (int64_t i = 0; i < kBlockVectors; ++i) v[i] = hn::IfThenElse(hn::Gt(other.v[i], v[i]), other.v[i], v[i]);
  }
  HWY_INLINE void Store(float scale, float* to) const {
    const auto s = hn::Set(BlockTag(), scale);
    for (int64_t i = 0; i < kBlockVectors; ++i) hn::StoreU(hn::Mul(v[i], s), BlockTag(), to + i * kBlockLanes);
  }
};

/// tile [count][16] -> channels <= 16 rows of `count` values, `stride` apart, rounding to T.
template <class T>
void WriteChannels(const float* tile, int64_t count, int64_t channels, int64_t stride, T* to) {
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < count; ++i) to[c * stride + i] = FromFloat<T>(tile[i * kBlockChannels + c]);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
