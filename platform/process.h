// SPDX-License-Identifier: Apache-2.0
// This process and the shared libraries in it.
#pragma once

#include <cstdint>

namespace polyop {

uint64_t ProcessId();

/// Returns a handle that keeps the loaded shared library that contains the address; null if it is not one.
void* HoldLibraryOf(const void* address);
void ReleaseLibrary(void* library);

/// Frees the memory that the C++ runtime reserves for exceptions if it is linked statically into this library. Call it
/// when the library is unloaded.
void FreeCppRuntime();

}  // namespace polyop
