// SPDX-License-Identifier: Apache-2.0
#include "platform/process.h"

#include <windows.h>

namespace polyop {

uint64_t ProcessId() { return GetCurrentProcessId(); }

void* HoldLibraryOf(const void* address) {
  HMODULE library = nullptr;
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, static_cast<LPCWSTR>(address), &library);
  return library;
}

void ReleaseLibrary(void* library) { FreeLibrary(static_cast<HMODULE>(library)); }

void FreeCppRuntime() {}

}  // namespace polyop
