// SPDX-License-Identifier: Apache-2.0
// Uniform random numbers that are a function of a key and a counter.
#pragma once

#include <array>
#include <cstdint>

#include "core/host_device.h"

namespace polyop {

/// Philox4x32 with 10 rounds.
struct Philox {
  uint32_t key[2];

  /// Replaces a counter of 128 bits by as many random bits.
  POLYOP_HD void operator()(uint32_t (&c)[4]) const {
    uint32_t first = key[0], second = key[1];
    for (int round = 0; round < 10; ++round) {
      const uint64_t p = uint64_t{0xD2511F53} * c[0], q = uint64_t{0xCD9E8D57} * c[2];
      const uint32_t a = static_cast<uint32_t>(q >> 32) ^ c[1] ^ first,
                     b = static_cast<uint32_t>(p >> 32) ^ c[3] ^ second;
      c[0] = a;
      c[1] = static_cast<uint32_t>(q);
      c[2] = b;
      c[3] = static_cast<uint32_t>(p);
      first += 0x9E3779B9;
      second += 0xBB67AE85;
    }
  }
};

/// The random numbers of one element.
class Draws {
 public:
  POLYOP_HD Draws(const int64_t* seed, int64_t element)
      : philox_{{static_cast<uint32_t>(seed[0]), static_cast<uint32_t>(seed[1])}}, element_(element) {}

  /// Returns a number in (0, 1), of 53 bits.
  POLYOP_HD double Uniform() {
    if (used_ == 2) {
      bits_[0] = static_cast<uint32_t>(element_);
      bits_[1] = static_cast<uint32_t>(element_ >> 32);
      bits_[2] = block_++;
      bits_[3] = 0;
      philox_(bits_);
      used_ = 0;
    }
    const uint64_t high = bits_[2 * used_], low = bits_[2 * used_ + 1];
    ++used_;
    return (static_cast<double>((high << 32 | low) >> 12) + 0.5) * 0x1p-52;
  }

 private:
  Philox philox_;
  int64_t element_;
  uint32_t block_ = 0, bits_[4] = {};
  int used_ = 2;
};

}  // namespace polyop
