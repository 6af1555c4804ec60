// SPDX-License-Identifier: Apache-2.0
// Images in a blocked channels-last layout for operators that sample at irregular positions: 16 channels of a pixel are
// adjacent, in one cache line (half of one in half precision). A sample of 16 channels is one vector load instead of 16
// scattered ones. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_KERNELS_CPU_CHANNEL_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_CHANNEL_BLOCKS_INL_H_
#undef POLYOP_KERNELS_CPU_CHANNEL_BLOCKS_INL_H_
#else
#define POLYOP_KERNELS_CPU_CHANNEL_BLOCKS_INL_H_
#endif

#include "hwy/cache_control.h"
#include "kernels/cpu/quantized-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"
#include "kernels/cpu/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kBlockChannels = 16;

/// The vectors of a block: one on AVX-512, two on AVX2, four on SSE4 and NEON.
using BlockTag = hn::CappedTag<float, kBlockChannels>;
constexpr int64_t kBlockLanes = static_cast<int64_t>(hn::MaxLanes(BlockTag()));
constexpr int64_t kBlockVectors = kBlockChannels / kBlockLanes;

/// The element type of blocks of an image of T: T itself, which moves less memory, if an instruction widens it; else
/// float. Blocks of quantized numbers hold their differences from the zero point, which are exact in bfloat16.
template <class T>
using BlockElement = std::conditional_t<POLYOP_NO_F16C && std::is_same_v<T, Half>, float,
                                        std::conditional_t<std::is_same_v<T, Q8>, BFloat16, T>>;

/// Channel 16 b + c of image n at pixel p is at index ((n * blocks + b) * pixels + p) * 16 + c. Channels after the last
/// are 0. Element is float or the image's own type.
template <class Element>
struct BlocksOf {
  const Element* data = nullptr;
  int64_t blocks = 0, pixels = 0;

  const Element* Block(int64_t image, int64_t block) const {
    return data + (image * blocks + block) * pixels * kBlockChannels;
  }
  static int64_t BlocksFor(int64_t channels) { return (channels + kBlockChannels - 1) / kBlockChannels; }
  static int64_t ElementsFor(int64_t images, int64_t channels, int64_t pixels) {
    return images * BlocksFor(channels) * pixels * kBlockChannels;
  }
};
using ChannelBlocks = BlocksOf<float>;

/// Interleaves `count` pixels of up to 16 channels of 16 bits, whose planes are `plane_stride` apart, to
/// [count][pitch].
template <class T>
  requires(sizeof(T) == 2)
void InterleaveChannels(const T* from, int64_t channels, int64_t plane_stride, int64_t count, T* to,
                        int64_t pitch = kBlockChannels) {
  const EightTag d;
  const int64_t whole = count / 8 * 8;
  for (int64_t p = 0; p < whole; p += 8) {
    for (int64_t c = 0; c < kBlockChannels; c += 8) {
      hn::Vec<EightTag> rows[8];
      for (int64_t k = 0; k < 8; ++k) {
        rows[k] = c + k < channels ? hn::LoadU(d, reinterpret_cast<const uint16_t*>(from + (c + k) * plane_stride + p))
                                   : hn::Zero(d);
      }
      Transpose(rows);
      for (int64_t k = 0; k < 8; ++k) hn::StoreU(rows[k], d, reinterpret_cast<uint16_t*>(to + (p + k) * pitch + c));
    }
  }
  for (int64_t p = whole; p < count; ++p) {
    for (int64_t c = 0; c < kBlockChannels; ++c) to[p * pitch + c] = c < channels ? from[c * plane_stride + p] : T{};
  }
}

/// Like above, but converts to float.
template <class T>
void InterleaveChannels(const T* from, int64_t channels, int64_t plane_stride, int64_t count, float* to,
                        int64_t pitch = kBlockChannels) {
  constexpr int64_t kTile = 32;  // 2 KiB of the result, which stays in the L1 cache while the channels are visited
  const QuadTag q;
  for (int64_t tile = 0; tile < count; tile += kTile) {
    const int64_t size = std::min(count - tile, kTile), whole = size / 4 * 4;
    float* const target = to + tile * pitch;
    for (int64_t p = 0; channels < kBlockChannels && p < size; ++p)
      std::fill_n(target + p * pitch, kBlockChannels, 0.0f);
    int64_t c = 0;
    for (; c + 4 <= channels; c += 4) {
      const T* const planes = from + c * plane_stride + tile;
      for (int64_t p = 0; p < whole; p += 4) {
        hn::Vec<QuadTag> quad[4];
        for (int64_t k = 0; k < 4; ++k) quad[k] = LoadFloat(q, planes + k * plane_stride + p);
        Transpose(quad);
        for (int64_t k = 0; k < 4; ++k) hn::StoreU(quad[k], q, target + (p + k) * pitch + c);
      }
      for (int64_t p = whole; p < size; ++p) {
        for (int64_t k = 0; k < 4; ++k) target[p * pitch + c + k] = ToFloat(planes[k * plane_stride + p]);
      }
    }
    for (; c < channels; ++c) {
      const T* const plane = from + c * plane_stride + tile;
      for (int64_t p = 0; p < size; ++p) target[p * pitch + c] = ToFloat(plane[p]);
    }
  }
}

/// Like above, for an image whose elements `codes` states.
template <class T, class Element>
void InterleaveChannels(const T* from, int64_t channels, int64_t plane_stride, int64_t count, Element* to,
                        int64_t pitch, const Requantize<T>& codes) {
  if constexpr (std::is_same_v<T, Q8>) {
    InterleaveDifferences(from, channels, plane_stride, count, to, pitch, codes);
  } else {
    InterleaveChannels(from, channels, plane_stride, count, to, pitch);
  }
}

/// Copies blocks [first_block, first_block + blocks) of input [N, C, pixels…] to `memory`, which has N * blocks *
/// (pixels + zero_pixels) * 16 elements. Each block is followed by `zero_pixels` pixels of 0, which count as pixels of
/// the result. Block indices of the result start at 0.
template <class T, class Element>
BlocksOf<Element> ToChannelBlocks(const Context& context, const T* input, int64_t images, int64_t channels,
                                  int64_t pixels, Element* memory, int64_t first_block, int64_t blocks,
                                  int64_t zero_pixels = 0, const Requantize<T>& codes = {}) {
  const BlocksOf<Element> result{memory, blocks, pixels + zero_pixels};
  constexpr int64_t kRun = 4096;  // pixels per work item
  const int64_t runs = (pixels + kRun - 1) / kRun;
  context.ParallelFor(images * blocks * runs, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t run = item % runs, plane = item / runs, image = plane / blocks;
      const int64_t first = (first_block + plane % blocks) * kBlockChannels;
      const int64_t begin_pixel = run * kRun, end_pixel = std::min(pixels, begin_pixel + kRun);
      Element* const block = memory + plane * result.pixels * kBlockChannels;
      if (run == 0) std::fill_n(block + pixels * kBlockChannels, zero_pixels * kBlockChannels, Element{});
      InterleaveChannels(input + (image * channels + first) * pixels + begin_pixel,
                         std::min(kBlockChannels, channels - first), pixels, end_pixel - begin_pixel,
                         block + begin_pixel * kBlockChannels, kBlockChannels, codes);
    }
  });
  return result;
}

/// Copies input [N, C, pixels…] to `memory`, which has ElementsFor() elements.
template <class T, class Element>
BlocksOf<Element> ToChannelBlocks(const Context& context, const T* input, int64_t images, int64_t channels,
                                  int64_t pixels, Element* memory) {
  return ToChannelBlocks(context, input, images, channels, pixels, memory, 0, ChannelBlocks::BlocksFor(channels));
}

/// Copies input [N, C, pixels…] to [N][pixels][C padded with 0 to whole blocks], for samples of all channels at one
/// position, whose blocks would otherwise be an image apart.
template <class T, class Element>
void ToChannelsLast(const Context& context, const T* input, int64_t images, int64_t channels, int64_t pixels,
                    Element* memory, const Requantize<T>& codes = {}) {
  const int64_t pitch = ChannelBlocks::BlocksFor(channels) * kBlockChannels;
  constexpr int64_t kRun = 128;  // pixels per work item
  const int64_t runs = (pixels + kRun - 1) / kRun;
  context.ParallelFor(images * runs, GrainFor(static_cast<double>(kRun * pitch)), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t image = item / runs, pixel = item % runs * kRun, count = std::min(kRun, pixels - pixel);
      for (int64_t c = 0; c < channels; c += kBlockChannels) {
        InterleaveChannels(input + (image * channels + c) * pixels + pixel, std::min(kBlockChannels, channels - c),
                           pixels, count, memory + (image * pixels + pixel) * pitch + c, pitch, codes);
      }
    }
  });
}

/// A block of 16 channels in registers.
struct BlockSum {
  hn::Vec<BlockTag> v[kBlockVectors];

  HWY_INLINE void Fill(float value) {
    for (int64_t i = 0; i < kBlockVectors; ++i) v[i] = hn::Set(BlockTag(), value);
  }
  template <class Element>
  HWY_INLINE void Load(const Element* from) {
    for (int64_t i = 0; i < kBlockVectors; ++i) v[i] = LoadFloat(BlockTag(), from + i * kBlockLanes);
  }
  /// Adds weight * pixel. The pixel is the second factor, because clang folds the load of the second factor into the
  /// multiplication. Folding the weight instead would make scattered pixels 10 % slower.
  template <class Element>
  HWY_INLINE void Add(const Element* pixel, float weight) {
    const auto w = hn::Set(BlockTag(), weight);
    for (int64_t i = 0; i < kBlockVectors; ++i) {
      v[i] = hn::MulAdd(w, LoadFloat(BlockTag(), pixel + i * kBlockLanes), v[i]);
    }
  }
  /// Adds weight * other.
  HWY_INLINE void Add(const BlockSum& other, float weight) {
    const auto w = hn::Set(BlockTag(), weight);
    for (int64_t i = 0; i < kBlockVectors; ++i) v[i] = hn::MulAdd(other.v[i], w, v[i]);
  }
  /// Sets this to max(this, other), ignoring NaN in `other`.
  HWY_INLINE void Max(const BlockSum& other) {
    for (int64_t i = 0; i < kBlockVectors; ++i) v[i] = hn::IfThenElse(hn::Gt(other.v[i], v[i]), other.v[i], v[i]);
  }
  /// Sets this to max(this, other * weight), ignoring NaN in `other`.
  HWY_INLINE void Max(const BlockSum& other, float weight) {
    BlockSum weighted;
    const auto w = hn::Set(BlockTag(), weight);
    for (int64_t i = 0; i < kBlockVectors; ++i) weighted.v[i] = hn::Mul(other.v[i], w);
    Max(weighted);
  }
  HWY_INLINE void ZeroWhere(float value) {
    const auto other = hn::Set(BlockTag(), value);
    for (int64_t i = 0; i < kBlockVectors; ++i) v[i] = hn::IfThenZeroElse(hn::Eq(v[i], other), v[i]);
  }
  HWY_INLINE void Scale(float factor) {
    const auto f = hn::Set(BlockTag(), factor);
    for (int64_t i = 0; i < kBlockVectors; ++i) v[i] = hn::Mul(v[i], f);
  }
  HWY_INLINE void Store(float scale, float* to) const {
    const auto s = hn::Set(BlockTag(), scale);
    for (int64_t i = 0; i < kBlockVectors; ++i) hn::StoreU(hn::Mul(v[i], s), BlockTag(), to + i * kBlockLanes);
  }
};

// Returns eight floats rounded to T, which has 16 bits.
template <class T>
HWY_INLINE hn::Vec<EightTag> RoundEight(const float* from) {
  using To = std::conditional_t<std::is_same_v<T, Half>, hwy::float16_t, hwy::bfloat16_t>;
  const hn::CappedTag<float, 8> df;
  const hn::Rebind<To, decltype(df)> dt;
  const hn::Rebind<uint16_t, decltype(df)> d;
  const auto rounded = [&](int64_t at) HWY_ATTR { return hn::BitCast(d, hn::DemoteTo(dt, hn::LoadU(df, from + at))); };
  if constexpr (hn::MaxLanes(df) == 8) {
    return rounded(0);
  } else {
    return hn::Combine(EightTag(), rounded(4), rounded(0));
  }
}

// WriteChannels for groups of eight channels. Requires: count >= 8. Returns the number of channels written.
template <class T>
int64_t WriteEights(const float* tile, int64_t count, int64_t channels, int64_t stride, T* to, int64_t pitch) {
  int64_t c = 0;
  for (; c + 8 <= channels; c += 8) {
    for (int64_t next = 0; next < count; next += 8) {
      const int64_t i = std::min(next, count - 8);  // the last group overlaps the previous one
      hn::Vec<EightTag> rows[8];
      for (int64_t k = 0; k < 8; ++k) rows[k] = RoundEight<T>(tile + (i + k) * pitch + c);
      Transpose(rows);
      for (int64_t k = 0; k < 8; ++k) {
        hn::StoreU(rows[k], EightTag(), reinterpret_cast<uint16_t*>(to + (c + k) * stride + i));
      }
    }
  }
  return c;
}

/// Writes tile [count][pitch] to `channels` <= pitch rows of `count` values, which are `stride` apart, rounded to T;
/// i32 stays i32. With kStream, bypasses the caches. Requires for kStream: f32, rows aligned to 64 bytes, and the task
/// ends with hwy::FlushStream().
template <bool kStream = false, class From, class T>
void WriteChannels(const From* tile, int64_t count, int64_t channels, int64_t stride, T* to,
                   int64_t pitch = kBlockChannels) {
  const QuadTag q;
  const hn::Rebind<From, QuadTag> from;
  const int64_t whole = count / 4 * 4;
  const auto store = [&](const From& value, T* at) {
    if constexpr (std::is_integral_v<T>) {
      *at = value;
    } else {
      *at = FromFloat<T>(value);
    }
  };
  int64_t c = 0;
  if constexpr (sizeof(BlockElement<T>) == 2) {
    if (count >= 8) c = WriteEights(tile, count, channels, stride, to, pitch);
  }
  for (; c + 4 <= channels; c += 4) {
    for (int64_t i = 0; i < whole; i += 4) {
      hn::Vec<QuadTag> quad[4];
      for (int64_t k = 0; k < 4; ++k) quad[k] = hn::BitCast(q, hn::LoadU(from, tile + (i + k) * pitch + c));
      Transpose(quad);
      for (int64_t k = 0; k < 4; ++k) {
        T* const at = to + (c + k) * stride + i;
        if constexpr (kStream) {
          hn::Stream(quad[k], q, at);
        } else if constexpr (std::is_integral_v<T>) {
          hn::StoreU(hn::BitCast(from, quad[k]), from, at);
        } else {
          StoreFloat(quad[k], q, at);
        }
      }
    }
    for (int64_t i = whole; i < count; ++i) {
      for (int64_t k = 0; k < 4; ++k) store(tile[i * pitch + c + k], to + (c + k) * stride + i);
    }
  }
  for (; c < channels; ++c) {
    for (int64_t i = 0; i < count; ++i) store(tile[i * pitch + c], to + c * stride + i);
  }
}

/// Like above, for results whose elements `codes` states.
template <bool kStream = false, class T>
void WriteChannels(const float* tile, int64_t count, int64_t channels, int64_t stride, T* to, int64_t pitch,
                   const Requantize<T>& codes) {
  if constexpr (std::is_same_v<T, Q8>) {
    WriteRounded(tile, count, channels, stride, to, pitch, codes);
  } else {
    WriteChannels<kStream>(tile, count, channels, stride, to, pitch);
  }
}

/// Writes up to 16 channels of `count` values each to contiguous memory. With `stream`, bypasses the caches: the result
/// is assembled in `spare`, which must have room for it, and the task must end with hwy::FlushStream().
template <class From, class T>
void WriteChannelRun(const From* tile, From* spare, int64_t count, int64_t channels, bool stream, T* to,
                     const Requantize<T>& codes = {}) {
  static_assert(sizeof(T) <= sizeof(From));
  T* const assembled = stream ? reinterpret_cast<T*>(spare) : to;
  if constexpr (std::is_same_v<T, Q8>) {
    WriteRounded(tile, count, channels, count, assembled, kBlockChannels, codes);
  } else {
    WriteChannels(tile, count, channels, count, assembled);
  }
  if (stream) StreamRun(assembled, channels * count, to);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
