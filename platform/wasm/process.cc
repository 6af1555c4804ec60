// SPDX-License-Identifier: Apache-2.0
#include "platform/process.h"

namespace polyop {

uint64_t ProcessId() { return 0; }
void* HoldLibraryOf(const void*) { return nullptr; }
void ReleaseLibrary(void*) {}
void FreeCppRuntime() {}

}  // namespace polyop
