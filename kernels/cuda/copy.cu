#include <cuda_runtime.h>

#include "core/device_run.h"

namespace polyop {

Status CudaCopy(void* stream, void* to, const void* from, size_t bytes, bool to_host) {
  const auto on = static_cast<cudaStream_t>(stream);
  cudaError_t error = cudaMemcpyAsync(to, from, bytes, to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice, on);
  if (error == cudaSuccess && to_host) error = cudaStreamSynchronize(on);
  return error == cudaSuccess ? Status::Ok() : Internal("CUDA: ", cudaGetErrorString(error));
}

}  // namespace polyop
