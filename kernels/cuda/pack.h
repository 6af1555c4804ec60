// Neighbouring elements that a thread of a GPU reads or writes in one piece.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polyop {

/// kCount is a power of two; a piece has at most 16 bytes.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  static_assert(sizeof(T) * kCount <= 16);
  T of[kCount];

  /// Whether memory may be taken for packs.
  static bool IsAligned(const T* data) { return reinterpret_cast<uintptr_t>(data) % alignof(Pack) == 0; }
};

}  // namespace polyop
