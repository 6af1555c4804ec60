// SPDX-License-Identifier: Apache-2.0
#include "platform/library.h"

#include <dlfcn.h>

namespace polyop {

void* LoadSharedLibrary(const std::filesystem::path& file, std::string* error) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) *error = dlerror();
  return library;
}

void* FindFunction(void* library, const char* name) { return dlsym(library, name); }

}  // namespace polyop
