// SPDX-License-Identifier: Apache-2.0
// Registers all of polyop's operators in PyTorch for Windows, and calls one.
//
//   run_torch LIBRARY
//
// LIBRARY is polyop's library for PyTorch. Prints the result of a call of roi_align, and the error codes of two calls:
// 0, and that of an invalid one.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <windows.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

using torch::stable::Tensor;

template <class T>
StableIValue Pack(const T& value) {
  return torch::stable::detail::from(value);
}

Tensor MakeTensor(const std::vector<int64_t>& sizes, const std::vector<float>& values) {
  Tensor tensor = torch::stable::empty(sizes, torch::headeronly::ScalarType::Float);
  std::memcpy(tensor.mutable_data_ptr(), values.data(), values.size() * sizeof(float));
  return tensor;
}

// Calls roi_align on an image of ones with a RoI of this batch index. Returns PyTorch's error code.
int CallRoiAlign(float batch_index, Tensor* result) {
  const Tensor image = MakeTensor({1, 1, 4, 4}, std::vector<float>(16, 1.0f));
  const Tensor rois = MakeTensor({1, 5}, {batch_index, 0, 0, 3, 3});
  std::array<StableIValue, 8> stack = {Pack(image), Pack(rois),       Pack(int64_t{2}),         Pack(int64_t{2}),
                                       Pack(1.0),   Pack(int64_t{2}), Pack(std::string("avg")), Pack(int64_t{0})};
  const int error = torch_call_dispatcher("polyop::roi_align", "", stack.data(), TORCH_ABI_VERSION);
  if (error == 0) *result = torch::stable::detail::to<Tensor>(stack[0]);
  return error;
}

}  // namespace

int wmain(int count, wchar_t** arguments) {
  if (count != 2) {
    std::fputs("usage: run_torch LIBRARY\n", stderr);
    return 2;
  }
  const HMODULE library = LoadLibraryW(arguments[1]);
  if (library == nullptr) {
    std::fprintf(stderr, "polyop's library was not loaded: error %lu\n", GetLastError());
    return 1;
  }
  using Register = const char* (*)();
  const auto do_register =
      reinterpret_cast<Register>(reinterpret_cast<void*>(GetProcAddress(library, "polyop_torch_register")));
  if (const char* problem = do_register()) {
    std::printf("registering failed: %s\n", problem);
    return 1;
  }
  Tensor result;
  const int error = CallRoiAlign(0, &result);
  if (error != 0) return 1;
  for (int i = 0; i < 4; ++i) std::printf("%g ", static_cast<const float*>(result.const_data_ptr())[i]);
  std::printf("\n%d %d\n", error, CallRoiAlign(7, &result));
  return 0;
}
