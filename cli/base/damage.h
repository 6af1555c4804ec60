// SPDX-License-Identifier: Apache-2.0
// Damaged files for tests of the readers.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace polyop::cli {

/// Returns `good` with one to four bytes changed; every third result on average is also truncated.
inline std::vector<uint8_t> Damaged(const std::vector<uint8_t>& good, std::mt19937& rng) {
  std::vector<uint8_t> bad = good;
  for (uint32_t changes = 1 + rng() % 4; changes > 0; --changes) bad[rng() % bad.size()] = static_cast<uint8_t>(rng());
  if (rng() % 3 == 0) bad.resize(rng() % bad.size());
  return bad;
}

}  // namespace polyop::cli
