// SPDX-License-Identifier: Apache-2.0
// Memory aligned to 64 bytes, for scratch of kernels.
#pragma once

#include <cstddef>

namespace polyop {

/// Returns memory, or null if there is none. Only FreeAligned() may free it.
void* AllocateAligned(size_t bytes);
void FreeAligned(void* memory);

}  // namespace polyop
