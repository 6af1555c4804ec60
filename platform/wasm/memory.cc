// SPDX-License-Identifier: Apache-2.0
#include "platform/memory.h"

#include <cstdint>
#include <cstdlib>

namespace polyop {

void* AllocateAligned(size_t bytes) {
  // The size is of 32 bits: rounded up, a size near 4 GiB would be 0.
  return bytes > SIZE_MAX - 63 ? nullptr : std::aligned_alloc(64, (bytes + 63) / 64 * 64);
}
void FreeAligned(void* memory) { std::free(memory); }

}  // namespace polyop
