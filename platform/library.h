// SPDX-License-Identifier: Apache-2.0
// Shared libraries: their names, and loading them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace polyop {

// A library `name` is the file kLibraryPrefix + name + kLibrarySuffix. On Linux, a version may follow. A runtime is
// searched for in the system's folders only where these have no old one: Windows has an ONNX Runtime in its own.
#if defined(_WIN32)
inline constexpr std::string_view kLibraryPrefix = "", kLibrarySuffix = ".dll";
inline constexpr bool kSearchesSystemFolders = false;
#elif defined(__APPLE__)
inline constexpr std::string_view kLibraryPrefix = "lib", kLibrarySuffix = ".dylib";
inline constexpr bool kSearchesSystemFolders = true;
#else
inline constexpr std::string_view kLibraryPrefix = "lib", kLibrarySuffix = ".so";
inline constexpr bool kSearchesSystemFolders = true;
#endif

/// Returns the file name of a library: "libmy_ops_torch.so", "my_ops_torch.dll".
inline std::string LibraryFile(std::string_view name) {
  return std::string(kLibraryPrefix).append(name).append(kLibrarySuffix);
}

/// Loads a library and what it needs, which may be in the same folder. Searches the system's folders if `file` is a
/// name without a folder. Returns null and the reason, in one line that names the file, if it cannot be loaded.
void* LoadSharedLibrary(const std::filesystem::path& file, std::string* error);

/// Returns the address of an exported function, or null.
void* FindFunction(void* library, const char* name);

}  // namespace polyop
