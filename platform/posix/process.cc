// SPDX-License-Identifier: Apache-2.0
#include "platform/process.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>

#ifdef __GLIBCXX__
// A function of libstdc++. Frees the 72 kB that it reserves for exceptions thrown when out of memory.
namespace __gnu_cxx {
__attribute__((weak)) void __freeres() noexcept;
}
#endif

namespace polyop {

uint64_t ProcessId() { return static_cast<uint64_t>(getpid()); }

void* HoldLibraryOf(const void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return nullptr;
  return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
}

void ReleaseLibrary(void* library) { dlclose(library); }

void FreeCppRuntime() {
#ifdef __GLIBCXX__
  // Another library uses this copy of libstdc++ unless it is in the same file as this function.
  Dl_info here, there;
  const bool is_own =
      __gnu_cxx::__freeres != nullptr && dladdr(reinterpret_cast<const void*>(&FreeCppRuntime), &here) != 0 &&
      dladdr(reinterpret_cast<const void*>(&__gnu_cxx::__freeres), &there) != 0 && here.dli_fbase == there.dli_fbase;
  if (is_own) __gnu_cxx::__freeres();
#endif
}

}  // namespace polyop
