// SPDX-License-Identifier: Apache-2.0
// Neighbouring elements that a GPU thread reads or writes with one instruction.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polyop {

/// Requires: kCount is a power of two; a pack has at most 16 bytes.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  static_assert(sizeof(T) * kCount <= 16);
  T of[kCount];

  /// Returns whether `data` is aligned for packs.
  static bool IsAligned(const T* data) { return reinterpret_cast<uintptr_t>(data) % alignof(Pack) == 0; }
};

}  // namespace polyop
