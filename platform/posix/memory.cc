// SPDX-License-Identifier: Apache-2.0
#include "platform/memory.h"

#include <cstdlib>

namespace polyop {

void* AllocateAligned(size_t bytes) { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); }
void FreeAligned(void* memory) { std::free(memory); }

}  // namespace polyop
