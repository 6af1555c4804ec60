// SPDX-License-Identifier: Apache-2.0
// Element types of tensors: the run-time tag, the C++ types and the map between them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/host_device.h"

#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

namespace polyop {

enum class DType : uint8_t { kF32, kF16, kBF16, kF64, kI8, kU8, kI16, kI32, kI64, kBool };
inline constexpr int kNumDTypes = 10;

/// IEEE binary16. Arithmetic is in float: kernels convert on load and store.
struct Half {
  uint16_t bits;
};

/// bfloat16: the upper half of an IEEE binary32.
struct BFloat16 {
  uint16_t bits;
};

/// Returns the bytes of one element.
constexpr size_t SizeOf(DType dtype) {
  constexpr size_t kSizes[kNumDTypes] = {4, 2, 2, 8, 1, 1, 2, 4, 8, 1};
  return kSizes[static_cast<int>(dtype)];
}

/// Returns the name used in signatures, messages and the CLI: "f32", "i64", ….
constexpr std::string_view NameOf(DType dtype) {
  constexpr std::string_view kNames[kNumDTypes] = {"f32", "f16", "bf16", "f64", "i8",
                                                   "u8",  "i16", "i32",  "i64", "bool"};
  return kNames[static_cast<int>(dtype)];
}

template <class T>
struct DTypeTraits;  // undefined for other types

#define POLYOP_DTYPE(TYPE, TAG)                 \
  template <>                                   \
  struct DTypeTraits<TYPE> {                    \
    static constexpr DType kDType = DType::TAG; \
  }
POLYOP_DTYPE(float, kF32);
POLYOP_DTYPE(Half, kF16);
POLYOP_DTYPE(BFloat16, kBF16);
POLYOP_DTYPE(double, kF64);
POLYOP_DTYPE(int8_t, kI8);
POLYOP_DTYPE(uint8_t, kU8);
POLYOP_DTYPE(int16_t, kI16);
POLYOP_DTYPE(int32_t, kI32);
POLYOP_DTYPE(int64_t, kI64);
POLYOP_DTYPE(bool, kBool);
#undef POLYOP_DTYPE

template <class T>
inline constexpr DType kDTypeOf = DTypeTraits<T>::kDType;

/// Converts to float; exact except for double. NaN stays NaN.
POLYOP_HD inline float ToFloat(float x) { return x; }
POLYOP_HD inline float ToFloat(double x) { return static_cast<float>(x); }
POLYOP_HD inline float ToFloat(BFloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
POLYOP_HD inline float ToFloat(Half h) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(h.bits));
#endif
  const uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000u) << 16;
  const uint32_t exponent = (h.bits >> 10) & 0x1Fu;
  const uint32_t mantissa = h.bits & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // zero or subnormal
  return sign ? -magnitude : magnitude;
}

/// Rounds to nearest, ties to even; overflow gives infinity, NaN stays NaN.
template <class T>
POLYOP_HD T FromFloat(float x);

template <>
POLYOP_HD inline float FromFloat<float>(float x) {
  return x;
}
template <>
POLYOP_HD inline double FromFloat<double>(float x) {
  return x;
}
template <>
POLYOP_HD inline BFloat16 FromFloat<BFloat16>(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}
template <>
POLYOP_HD inline Half FromFloat<Half>(float x) {
#ifdef __CUDA_ARCH__
  return {__half_as_ushort(__float2half_rn(x))};
#endif
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return {static_cast<uint16_t>(sign | 0x7E00u)};
  if (magnitude >= 0x477FF000u) return {static_cast<uint16_t>(sign | 0x7C00u)};  // >= 65520
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal; the addition of 0.5 rounds
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000u))};
  }
  const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return {static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
}

}  // namespace polyop
