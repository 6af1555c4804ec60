// SPDX-License-Identifier: Apache-2.0
// Images of 8-bit integers with a scale and a zero point, as ONNX's QuantizeLinear writes them.
//
// Kernels sum differences q - zero, which are exact in bfloat16 and in float, and round once: an operator f that
// commutes with positive factors has f(s * (q - zero)) / t = (s / t) * f(q - zero), where s is the scale of the input
// and t that of the output.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/dtype.h"
#include "core/tensor.h"

namespace polyop {

/// An 8-bit quantized number, i8 or u8. A Requantize states which, and its zero point.
struct Q8 {
  uint8_t bits;
};

/// How a kernel reads quantized numbers and writes its results. Floating types need nothing.
template <class T>
struct Requantize {};

/// Unsigned numbers are read as signed ones that are smaller by 128, with a zero point that is smaller by 128.
template <>
struct Requantize<Q8> {
  uint8_t flip = 0;         // 0x80 for u8: the bits that turn a number into a signed one
  int16_t input_zero = 0;   // of signed numbers
  int32_t output_zero = 0;  // of signed numbers
  float factor = 1;         // the input's scale divided by the output's

  /// Returns the number minus the zero point: an integer in [-255, 255].
  int32_t Difference(Q8 q) const { return static_cast<int8_t>(q.bits ^ flip) - input_zero; }
  /// Rounds factor * sum to nearest, ties to even, adds the zero point, and clamps to 8 bits. NaN counts as 0.
  Q8 Round(float sum) const {
    const float scaled = sum * factor;
    const float clamped = std::isnan(scaled) ? 0.0f : std::clamp(scaled, -kFar, kFar);
    const int32_t rounded = static_cast<int32_t>(std::nearbyint(clamped)) + output_zero;
    return {static_cast<uint8_t>(static_cast<uint8_t>(std::clamp(rounded, -128, 127)) ^ flip)};
  }

  static constexpr float kFar = 1024;  // clamping to this does not change the result, which has 8 bits
};

/// Returns a tensor of i8 or u8 as one of quantized numbers.
template <int R>
Tensor<const Q8, R> AsQ8(const Tensor<const int8_t, R>& t) {
  return {reinterpret_cast<const Q8*>(t.data()), t.shape()};
}
template <int R>
Tensor<const Q8, R> AsQ8(const Tensor<const uint8_t, R>& t) {
  return {reinterpret_cast<const Q8*>(t.data()), t.shape()};
}
template <int R>
Tensor<Q8, R> AsQ8(const Tensor<int8_t, R>& t) {
  return {reinterpret_cast<Q8*>(t.data()), t.shape()};
}
template <int R>
Tensor<Q8, R> AsQ8(const Tensor<uint8_t, R>& t) {
  return {reinterpret_cast<Q8*>(t.data()), t.shape()};
}

}  // namespace polyop
