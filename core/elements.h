// SPDX-License-Identifier: Apache-2.0
// Reads and writes single elements of tensors whose type is known only at run time, for code that need not be fast.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/dtype.h"

namespace polyop {

/// Returns true for f32, f16, bf16 and f64.
inline bool IsReal(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF64;
}

/// Calls f with a value of the C++ type. Only the type is significant.
template <class F>
auto VisitType(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kF32: return f(float{});
    case DType::kF16: return f(Half{});
    case DType::kBF16: return f(BFloat16{});
    case DType::kF64: return f(double{});
    case DType::kI8: return f(int8_t{});
    case DType::kU8: return f(uint8_t{});
    case DType::kI16: return f(int16_t{});
    case DType::kI32: return f(int32_t{});
    case DType::kI64: return f(int64_t{});
    case DType::kBool: break;
  }
  return f(bool{});
}

/// Returns element i of an array, which need not be aligned.
inline double ReadElement(DType dtype, const void* data, int64_t i) {
  return VisitType(dtype, [&](auto tag) -> double {
    using T = decltype(tag);
    T value;
    std::memcpy(&value, static_cast<const char*>(data) + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      return ToFloat(value);
    } else {
      return static_cast<double>(value);
    }
  });
}

/// Writes element i, rounded to the type. Integers are clamped to the type's range; NaN becomes 0.
inline void WriteElement(DType dtype, void* data, int64_t i, double value) {
  VisitType(dtype, [&](auto tag) {
    using T = decltype(tag);
    T stored;
    if constexpr (std::is_same_v<T, bool>) {
      stored = value != 0;
    } else if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      const bool inside = value > static_cast<double>(Limits::min()) && value < static_cast<double>(Limits::max());
      stored = inside ? static_cast<T>(value) : value > 0 ? Limits::max() : std::isnan(value) ? T{0} : Limits::min();
    } else if constexpr (std::is_floating_point_v<T>) {
      stored = static_cast<T>(value);
    } else {
      stored = FromFloat<T>(static_cast<float>(value));
    }
    std::memcpy(static_cast<char*>(data) + static_cast<size_t>(i) * sizeof(T), &stored, sizeof(T));
  });
}

}  // namespace polyop
