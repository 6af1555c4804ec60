// SPDX-License-Identifier: Apache-2.0
#include "testing/call_of_bytes.h"

#include <random>

namespace polyop::testing {

RandomCall CallOfBytes(const Op& op, std::span<const uint8_t> bytes) {
  size_t at = 0;
  const auto next = [&] { return at < bytes.size() ? bytes[at++] : uint32_t{0}; };
  const uint32_t high = next(), seed = high << 8 | next();
  std::mt19937 rng(seed);
  const Draw draw = [&](uint32_t n) -> uint32_t {
    if (at >= bytes.size()) return seed == 0 ? 0 : static_cast<uint32_t>(rng() % n);
    uint32_t v = next();
    if (n > 256) v = v << 8 | next();
    return v % n;
  };
  return MakeRandomCall(op, draw);
}

}  // namespace polyop::testing
