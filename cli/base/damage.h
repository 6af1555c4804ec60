// Damaged files, for the tests of those who read them.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace polyop::cli {

/// `good` with one to four bytes changed, and in one of three cases cut.
inline std::vector<uint8_t> Damaged(const std::vector<uint8_t>& good, std::mt19937& rng) {
  std::vector<uint8_t> bad = good;
  for (uint32_t changes = 1 + rng() % 4; changes > 0; --changes) bad[rng() % bad.size()] = static_cast<uint8_t>(rng());
  if (rng() % 3 == 0) bad.resize(rng() % bad.size());
  return bad;
}

}  // namespace polyop::cli
