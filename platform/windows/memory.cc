// SPDX-License-Identifier: Apache-2.0
#include "platform/memory.h"

#include <malloc.h>

namespace polyop {

void* AllocateAligned(size_t bytes) { return _aligned_malloc(bytes, 64); }
void FreeAligned(void* memory) { _aligned_free(memory); }

}  // namespace polyop
