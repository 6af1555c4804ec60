// SPDX-License-Identifier: Apache-2.0
#include "platform/library.h"

#include <windows.h>

#include <system_error>

namespace polyop {

void* LoadSharedLibrary(const std::filesystem::path& file, std::string* error) {
  const bool has_folder = file.has_parent_path();
  const std::filesystem::path full = has_folder ? std::filesystem::absolute(file) : file;
  // The first flag also searches the library's own folder, and requires a full path.
  const DWORD flags = (has_folder ? LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR : 0) | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
  const HMODULE library = LoadLibraryExW(full.c_str(), nullptr, flags);
  if (library == nullptr) {
    const DWORD code = GetLastError();
    *error = file.string() + ": " + std::system_category().message(static_cast<int>(code));
    // These messages name neither the reason nor what to do.
    if (code == ERROR_MOD_NOT_FOUND && std::filesystem::exists(full)) *error += " (a library that it needs is missing)";
    if (code == ERROR_BAD_EXE_FORMAT) *error += " (it is no DLL, or one of another processor)";
  }
  return library;
}

void* FindFunction(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
}

}  // namespace polyop
