// SPDX-License-Identifier: Apache-2.0
// Attributes and checks shared by the operators that read and write 8-bit integers with a scale and a zero point.
#pragma once

#include <span>
#include <tuple>

#include "core/definition.h"
#include "core/elements.h"
#include "core/status.h"
#include "kernels/cpu/quantized.h"

namespace polyop {

/// The base of an operator's parameters.
struct QuantizedRule {
  float input_scale = 1;
  int64_t input_zero_point = 0;
  float output_scale = 1;
  int64_t output_zero_point = 0;

  /// Checks that the zero points have the type of `input`, which is i8 or u8.
  Status CheckZeroPoints(const AnyTensor& input) const {
    const bool is_signed = input.dtype == DType::kI8;
    for (const auto& [name, zero] :
         {std::pair{"input_zero_point", input_zero_point}, std::pair{"output_zero_point", output_zero_point}}) {
      if (zero >= (is_signed ? -128 : 0) && zero <= (is_signed ? 127 : 255)) continue;
      return InvalidArgument("attribute '", name, "': expected a value of ", NameOf(input.dtype), ", ",
                             is_signed ? "-128 to 127" : "0 to 255", ", got ", zero);
    }
    return Status::Ok();
  }

  /// Returns how to read and write numbers of type I, which is int8_t or uint8_t.
  template <class I>
  Requantize<Q8> Codes() const {
    constexpr int kShift = std::is_signed_v<I> ? 0 : 128;
    return {.flip = static_cast<uint8_t>(kShift),
            .input_zero = static_cast<int16_t>(input_zero_point - kShift),
            .output_zero = static_cast<int32_t>(output_zero_point - kShift),
            .factor = static_cast<float>(static_cast<double>(input_scale) / static_cast<double>(output_scale))};
  }
};

inline constexpr std::tuple kQuantizedAttributes = {
    Attr("input_scale", &QuantizedRule::input_scale, "the number that an input's step of 1 stands for").GreaterThan(0),
    Attr("input_zero_point", &QuantizedRule::input_zero_point, "the input that stands for 0").Between(-128, 255),
    Attr("output_scale", &QuantizedRule::output_scale, "the number that an output's step of 1 stands for")
        .GreaterThan(0),
    Attr("output_zero_point", &QuantizedRule::output_zero_point, "the output that stands for 0").Between(-128, 255),
};

}  // namespace polyop
