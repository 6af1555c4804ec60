// SPDX-License-Identifier: Apache-2.0
// CUDA device memory for core/device_run.h.
#include <cuda_runtime.h>

#include "core/device_run.h"

namespace polyop {
namespace {

Status StatusOf(cudaError_t error) {
  return error == cudaSuccess ? Status::Ok() : Internal("CUDA: ", cudaGetErrorString(error));
}

Status Copy(void* stream, void* to, const void* from, size_t bytes, bool to_host) {
  const auto on = static_cast<cudaStream_t>(stream);
  cudaError_t error = cudaMemcpyAsync(to, from, bytes, to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice, on);
  if (error == cudaSuccess && to_host) error = cudaStreamSynchronize(on);
  return StatusOf(error);
}

Status Zero(void* stream, void* to, size_t bytes) {
  return StatusOf(cudaMemsetAsync(to, 0, bytes, static_cast<cudaStream_t>(stream)));
}

[[maybe_unused]] const bool registered = RegisterGpuMemory({Copy, Zero});

}  // namespace
}  // namespace polyop
