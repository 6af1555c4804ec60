// SPDX-License-Identifier: Apache-2.0
// Fast division by a number that is known before a kernel starts. GPUs divide 64-bit integers slowly.
#pragma once

#include <cstdint>

#include "core/host_device.h"

namespace polyop {

/// Divides non-negative integers by a positive one. Uses a multiplication below 2^31 (Granlund and Montgomery, Division
/// by Invariant Integers using Multiplication, 1994), else a division.
class Divider {
 public:
  Divider() = default;
  explicit Divider(int64_t divisor) : divisor_(divisor > 0 ? divisor : 1) {
    if (divisor_ >= kSmall) return;
    while ((int64_t{1} << shift_) < divisor_) ++shift_;
    magic_ = static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift_) - static_cast<uint64_t>(divisor_))) /
                                       static_cast<uint64_t>(divisor_) +
                                   1);
  }

  POLYOP_HD int64_t divisor() const { return divisor_; }
  POLYOP_HD int64_t Quotient(int64_t n) const {
    if (n >= kSmall || divisor_ >= kSmall) return n / divisor_;
    const uint32_t small = static_cast<uint32_t>(n);
    return (static_cast<uint32_t>((static_cast<uint64_t>(small) * magic_) >> 32) + small) >> shift_;
  }
  /// Returns the quotient and sets `*rest` to the remainder.
  POLYOP_HD int64_t Split(int64_t n, int64_t* rest) const {
    const int64_t quotient = Quotient(n);
    *rest = n - quotient * divisor_;
    return quotient;
  }

 private:
  static constexpr int64_t kSmall = int64_t{1} << 31;

  int64_t divisor_ = 1;
  uint32_t magic_ = 1;  // with the default divisor and shift: n * 1 / 2^32 + n
  uint32_t shift_ = 0;
};

}  // namespace polyop
