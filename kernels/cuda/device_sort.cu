// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device_sort.h"

#ifdef __CUDACC__
#include <cub/device/device_radix_sort.cuh>
#else
#include <algorithm>
#include <numeric>
#include <vector>
#endif

namespace polyop {

Status SortPairs::Sort(const CudaContext& cuda, int bits) {
  if (count > INT32_MAX) return InvalidArgument("expected fewer than 2^31 elements to sort, got ", count);
#ifdef __CUDACC__
  // CUB reports the scratch size only if there is a GPU, but engines may be built without one. Its counters are 256 x 4
  // bytes for every tile of a thousand pairs or more.
  const size_t bytes = static_cast<size_t>(count) + (size_t{1} << 20);
  cub::DoubleBuffer<uint64_t> key_buffers(keys, cuda.Allocate<uint64_t>(count));
  cub::DoubleBuffer<int32_t> value_buffers(values, cuda.Allocate<int32_t>(count));
  char* const scratch = cuda.Allocate<char>(static_cast<int64_t>(bytes));
  POLYOP_RETURN_IF_ERROR(cuda.Check());
  if (cuda.measuring() || count == 0) return Status::Ok();
  const auto stream = static_cast<cudaStream_t>(cuda.stream());
  const auto sort = [&](void* memory, size_t* size) {
    return cub::DeviceRadixSort::SortPairs(memory, *size, key_buffers, value_buffers, static_cast<int>(count), 0, bits,
                                           stream);
  };
  size_t required = 0;
  cudaError_t error = sort(nullptr, &required);
  if (error == cudaSuccess && required > bytes) {
    return Internal("CUB: expected at most ", bytes, " bytes of scratch to sort ", count, " pairs, got ", required);
  }
  if (error == cudaSuccess) error = sort(scratch, &required);
  if (error != cudaSuccess) return Internal("CUDA: ", cudaGetErrorString(error));
  keys = key_buffers.Current();
  values = value_buffers.Current();
#else
  POLYOP_RETURN_IF_ERROR(cuda.Check());
  if (cuda.measuring()) return Status::Ok();
  const uint64_t mask = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return (keys[a] & mask) < (keys[b] & mask); });
  const std::vector<uint64_t> old_keys(keys, keys + count);
  const std::vector<int32_t> old_values(values, values + count);
  for (int64_t i = 0; i < count; ++i) {
    keys[i] = old_keys[static_cast<size_t>(order[static_cast<size_t>(i)])];
    values[i] = old_values[static_cast<size_t>(order[static_cast<size_t>(i)])];
  }
#endif
  return Status::Ok();
}

}  // namespace polyop
