// SPDX-License-Identifier: Apache-2.0
// Prefetches rows that the processor does not predict.
#pragma once

#include <algorithm>
#include <cstdint>

#include "hwy/cache_control.h"

namespace polyop {

/// Prefetches the first 512 bytes of a row of `count` elements.
template <class T>
HWY_INLINE void PrefetchRow(const T* row, int64_t count) {
  const char* const bytes = reinterpret_cast<const char*>(row);
  const int64_t size = std::min<int64_t>(count * static_cast<int64_t>(sizeof(T)), 512);
  for (int64_t b = 0; b < size; b += 64) hwy::Prefetch(bytes + b);
}

}  // namespace polyop
