// SPDX-License-Identifier: Apache-2.0
#include "adapters/torch/cuda_stream.h"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <string_view>
#include <vector>

namespace polyop::torch_adapter {
namespace {

constexpr const char* kFunction = "aoti_torch_get_current_cuda_stream";
using GetStream = int32_t (*)(int32_t, void**);  // returns 0 on success

// Returns the paths of the loaded PyTorch libraries.
std::vector<std::string> LoadedLibraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        const std::string_view path = info->dlpi_name;
        if (path.substr(path.rfind('/') + 1).starts_with("libtorch")) {
          static_cast<std::vector<std::string>*>(found)->emplace_back(path);
        }
        return 0;
      },
      &paths);
  return paths;
}

// Python loads each PyTorch library with local scope, so the default scope may lack the function although it is loaded.
// It is then searched in each library.
GetStream FindFunction() {
  if (void* function = dlsym(RTLD_DEFAULT, kFunction)) return reinterpret_cast<GetStream>(function);
  for (const std::string& path : LoadedLibraries()) {
    void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    void* function = dlsym(library, kFunction);
    dlclose(library);  // the library stays loaded
    if (function != nullptr) return reinterpret_cast<GetStream>(function);
  }
  return nullptr;
}

}  // namespace

Status CurrentCudaStream(int32_t index, void** stream) {
  static const GetStream kGetStream = FindFunction();
  if (kGetStream == nullptr) {
    return Internal("PyTorch's CUDA stream is unavailable: no loaded PyTorch library exports ", kFunction);
  }
  if (const int32_t error = kGetStream(index, stream); error != 0) {
    return Internal("PyTorch's CUDA stream of device ", index, " is unavailable: ", kFunction, " returned ", error);
  }
  return Status::Ok();
}

}  // namespace polyop::torch_adapter
