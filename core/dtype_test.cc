// SPDX-License-Identifier: Apache-2.0
#include "core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>

namespace polyop {
namespace {

// Compares every half with its value by definition.
TEST(Half, WidensExactly) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
    double want = exponent == 0    ? std::ldexp(mantissa, -24)
                  : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                   : std::ldexp(1024 + mantissa, exponent - 25);
    if (bits & 0x8000) want = -want;
    const double got = ToFloat(Half{static_cast<uint16_t>(bits)});
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << bits;
      EXPECT_TRUE(std::isnan(ToFloat(FromFloat<Half>(static_cast<float>(got)))));
      continue;
    }
    ASSERT_EQ(got, want) << bits;
    ASSERT_EQ(FromFloat<Half>(static_cast<float>(got)).bits, bits);
  }
}

// Halfway points and their neighbours round to nearest, ties to even.
TEST(Half, RoundsToNearestEven) {
  for (uint16_t bits = 0; bits < 0x7BFF; ++bits) {
    const float low = ToFloat(Half{bits}), high = ToFloat(Half{static_cast<uint16_t>(bits + 1)});
    const float middle = (low + high) / 2;  // exact
    const uint16_t even = (bits & 1) ? static_cast<uint16_t>(bits + 1) : bits;
    ASSERT_EQ(FromFloat<Half>(middle).bits, even) << bits;
    ASSERT_EQ(FromFloat<Half>(std::nextafter(middle, low)).bits, bits);
    ASSERT_EQ(FromFloat<Half>(std::nextafter(middle, high)).bits, bits + 1);
    ASSERT_EQ(FromFloat<Half>(-middle).bits, even | 0x8000);
  }
  EXPECT_EQ(FromFloat<Half>(65519.99f).bits, 0x7BFF);
  EXPECT_EQ(FromFloat<Half>(65520.0f).bits, 0x7C00);
  EXPECT_EQ(FromFloat<Half>(1e30f).bits, 0x7C00);
}

TEST(BFloat16, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7F7F; ++bits) {
    const float low = ToFloat(BFloat16{static_cast<uint16_t>(bits)});
    ASSERT_EQ(FromFloat<BFloat16>(low).bits, bits);
    const float middle = std::bit_cast<float>((bits << 16) | 0x8000u);
    ASSERT_EQ(FromFloat<BFloat16>(middle).bits, (bits & 1) ? bits + 1 : bits);
    ASSERT_EQ(FromFloat<BFloat16>(std::bit_cast<float>((bits << 16) | 0x8001u)).bits, bits + 1);
  }
  EXPECT_TRUE(std::isnan(ToFloat(FromFloat<BFloat16>(NAN))));
  EXPECT_EQ(FromFloat<BFloat16>(INFINITY).bits, 0x7F80);
}

}  // namespace
}  // namespace polyop
