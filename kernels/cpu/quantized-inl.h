// SPDX-License-Identifier: Apache-2.0
// Reads and writes 8-bit quantized numbers in vectors: see kernels/cpu/quantized.h. Compiled once per instruction set;
// include it from a kernel file. For floating types, the functions ignore the Requantize.
#if defined(POLYOP_KERNELS_CPU_QUANTIZED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_QUANTIZED_INL_H_
#undef POLYOP_KERNELS_CPU_QUANTIZED_INL_H_
#else
#define POLYOP_KERNELS_CPU_QUANTIZED_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/quantized.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/transpose-inl.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {

/// Loads differences from the zero point.
template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloat(DF df, const Q8* p, const Requantize<Q8>& codes) {
  const hn::Rebind<uint8_t, DF> du;
  const hn::RebindToSigned<decltype(du)> ds;
  const hn::RebindToSigned<DF> di;
  const auto bits = hn::Xor(hn::LoadU(du, reinterpret_cast<const uint8_t*>(p)), hn::Set(du, codes.flip));
  const auto code = hn::PromoteTo(di, hn::BitCast(ds, bits));
  return hn::ConvertTo(df, hn::Sub(code, hn::Set(di, codes.input_zero)));
}
template <class DF, class T>
HWY_INLINE hn::Vec<DF> LoadFloat(DF df, const T* p, const Requantize<T>&) {
  return LoadFloat(df, p);
}

// Returns the results for sums, before they are clamped to 8 bits.
template <class DF>
HWY_INLINE auto RoundSums(DF df, hn::Vec<DF> sums, const Requantize<Q8>& codes) {
  const hn::RebindToSigned<DF> di;
  const auto far = hn::Set(df, Requantize<Q8>::kFar);
  const auto scaled = hn::Mul(sums, hn::Set(df, codes.factor));
  const auto number = hn::IfThenZeroElse(hn::IsNaN(scaled), scaled);
  return hn::Add(hn::NearestInt(hn::Max(hn::Neg(far), hn::Min(number, far))), hn::Set(di, codes.output_zero));
}

/// Rounds sums of differences and stores all lanes to unaligned memory.
template <class DF>
HWY_INLINE void StoreFloat(hn::Vec<DF> v, DF df, Q8* p, const Requantize<Q8>& codes) {
  const hn::Rebind<int8_t, DF> ds;
  const hn::Rebind<uint8_t, DF> du;
  const auto code = hn::DemoteTo(ds, RoundSums(df, v, codes));
  hn::StoreU(hn::Xor(hn::BitCast(du, code), hn::Set(du, codes.flip)), du, reinterpret_cast<uint8_t*>(p));
}
template <class DF, class T>
HWY_INLINE void StoreFloat(hn::Vec<DF> v, DF df, T* p, const Requantize<T>&) {
  StoreFloat(v, df, p);
}

/// Stores the first `count` lanes. Does not write beyond them.
template <class DF>
HWY_INLINE void StoreFloatN(hn::Vec<DF> v, DF df, Q8* p, size_t count, const Requantize<Q8>& codes) {
  HWY_ALIGN Q8 buffer[hn::MaxLanes(df)];
  StoreFloat(v, df, buffer, codes);
  for (size_t i = 0; i < count; ++i) p[i] = buffer[i];
}
template <class DF, class T>
HWY_INLINE void StoreFloatN(hn::Vec<DF> v, DF df, T* p, size_t count, const Requantize<T>&) {
  StoreFloatN(v, df, p, count);
}

namespace {

using ShortTag = hn::RebindToSigned<EightTag>;

/// Sets to[i] to the difference of from[i] from the zero point.
inline void WidenRow(const Q8* from, int64_t count, float* to, const Requantize<Q8>& codes) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(LoadFloat(d, from + i, codes), d, to + i);
  for (; i < count; ++i) to[i] = static_cast<float>(codes.Difference(from[i]));
}
template <class T>
void WidenRow(const T* from, int64_t count, float* to, const Requantize<T>&) {
  WidenRow(from, count, to);
}

/// Returns the elements as floats, in `buffer` unless T is float.
inline const float* AsFloats(const Q8* from, int64_t count, float* buffer, const Requantize<Q8>& codes) {
  WidenRow(from, count, buffer, codes);
  return buffer;
}
template <class T>
const float* AsFloats(const T* from, int64_t count, float* buffer, const Requantize<T>&) {
  return AsFloats(from, count, buffer);
}

/// Converts an integer of at most 8 bits and a sign to bfloat16, without rounding.
inline BFloat16 ExactBFloat16(int32_t integer) { return FromFloat<BFloat16>(static_cast<float>(integer)); }

/// Loads the differences of eight numbers from the zero point as bfloat16.
HWY_INLINE hn::Vec<EightTag> EightDifferences(const Q8* p, const Requantize<Q8>& codes) {
  const ShortTag d16;
  const hn::Rebind<int8_t, ShortTag> d8;
  const hn::RebindToUnsigned<decltype(d8)> du8;
  const hn::CappedTag<int32_t, 4> d32;
  const hn::RebindToUnsigned<decltype(d32)> du32;
  const hn::RebindToFloat<decltype(d32)> df;
  const auto bits = hn::Xor(hn::LoadU(du8, reinterpret_cast<const uint8_t*>(p)), hn::Set(du8, codes.flip));
  const auto difference = hn::Sub(hn::PromoteTo(d16, hn::BitCast(d8, bits)), hn::Set(d16, codes.input_zero));
  const auto upper_half = [&](auto integers)
                              HWY_ATTR { return hn::ShiftRight<16>(hn::BitCast(du32, hn::ConvertTo(df, integers))); };
  return hn::OrderedTruncate2To(EightTag(), upper_half(hn::PromoteLowerTo(d32, difference)),
                                upper_half(hn::PromoteUpperTo(d32, difference)));
}

/// Copies `count` elements from contiguous memory: the differences from the zero point.
inline void CopyDifferences(const Q8* from, int64_t count, BFloat16* to, const Requantize<Q8>& codes) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    hn::StoreU(EightDifferences(from + i, codes), EightTag(), reinterpret_cast<uint16_t*>(to + i));
  }
  for (; i < count; ++i) to[i] = ExactBFloat16(codes.Difference(from[i]));
}

/// Interleaves `count` pixels of up to 16 channels, whose planes are `plane_stride` apart, to [count][pitch], as
/// differences from the zero point. Channels after the last of the 16 are 0.
inline void InterleaveDifferences(const Q8* from, int64_t channels, int64_t plane_stride, int64_t count, BFloat16* to,
                                  int64_t pitch, const Requantize<Q8>& codes) {
  constexpr int64_t kPadded = 16;
  const EightTag d;
  const int64_t whole = count / 8 * 8;
  for (int64_t p = 0; p < whole; p += 8) {
    for (int64_t c = 0; c < kPadded; c += 8) {
      hn::Vec<EightTag> rows[8];
      for (int64_t k = 0; k < 8; ++k) {
        rows[k] = c + k < channels ? EightDifferences(from + (c + k) * plane_stride + p, codes) : hn::Zero(d);
      }
      Transpose(rows);
      for (int64_t k = 0; k < 8; ++k) hn::StoreU(rows[k], d, reinterpret_cast<uint16_t*>(to + (p + k) * pitch + c));
    }
  }
  for (int64_t p = whole; p < count; ++p) {
    for (int64_t c = 0; c < kPadded; ++c) {
      to[p * pitch + c] = c < channels ? ExactBFloat16(codes.Difference(from[c * plane_stride + p])) : BFloat16{};
    }
  }
}

// Returns the results for eight sums, before they are clamped to 8 bits.
template <class DF>
HWY_INLINE hn::Vec<EightTag> RoundEightSums(DF df, const float* from, const Requantize<Q8>& codes) {
  const ShortTag d16;
  if constexpr (hn::MaxLanes(DF()) == 8) {
    return hn::BitCast(EightTag(), hn::DemoteTo(d16, RoundSums(df, hn::LoadU(df, from), codes)));
  } else {
    return hn::BitCast(EightTag(), hn::OrderedDemote2To(d16, RoundSums(df, hn::LoadU(df, from), codes),
                                                        RoundSums(df, hn::LoadU(df, from + 4), codes)));
  }
}

/// Rounds the sums of a tile [count][pitch] to `channels` <= pitch rows of `count` numbers, which are `stride` apart.
inline void WriteRounded(const float* tile, int64_t count, int64_t channels, int64_t stride, Q8* to, int64_t pitch,
                         const Requantize<Q8>& codes) {
  const hn::CappedTag<float, 8> df;
  const ShortTag d16;
  const hn::Rebind<int8_t, ShortTag> d8;
  const hn::RebindToUnsigned<decltype(d8)> du8;
  int64_t c = 0;
  for (; count >= 8 && c + 8 <= channels; c += 8) {
    for (int64_t next = 0; next < count; next += 8) {
      const int64_t i = std::min(next, count - 8);  // the last group overlaps the previous one
      hn::Vec<EightTag> rows[8];
      for (int64_t k = 0; k < 8; ++k) rows[k] = RoundEightSums(df, tile + (i + k) * pitch + c, codes);
      Transpose(rows);
      for (int64_t k = 0; k < 8; ++k) {
        const auto bits = hn::BitCast(du8, hn::DemoteTo(d8, hn::BitCast(d16, rows[k])));
        hn::StoreU(hn::Xor(bits, hn::Set(du8, codes.flip)), du8, reinterpret_cast<uint8_t*>(to + (c + k) * stride + i));
      }
    }
  }
  for (; c < channels; ++c) {
    for (int64_t i = 0; i < count; ++i) to[c * stride + i] = codes.Round(tile[i * pitch + c]);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
