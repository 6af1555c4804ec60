// SPDX-License-Identifier: Apache-2.0
// The CUDA provider's kernel of by_hand.cc.
#include <cuda_runtime.h>

#include <cstdint>

namespace {

__global__ void ScaledGather(const float* x, const int64_t* index, const float* scale, float* y, int64_t rows,
                             int64_t columns, int64_t total) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < total; i += step) {
    const int64_t k = i / columns, row = index[k];
    const bool inside = row >= 0 && row < rows;
    y[i] = inside ? x[row * columns + i % columns] * (scale != nullptr ? scale[k] : 1.0f) : 0.0f;
  }
}

}  // namespace

extern "C" const char* LaunchScaledGather(const float* x, const int64_t* index, const float* scale, float* y,
                                          int64_t rows, int64_t columns, int64_t count, void* stream) {
  const int64_t total = count * columns;
  if (total == 0) return nullptr;
  const int64_t blocks = (total + 255) / 256;
  ScaledGather<<<static_cast<unsigned>(blocks < (1 << 20) ? blocks : 1 << 20), 256, 0,
                 static_cast<cudaStream_t>(stream)>>>(x, index, scale, y, rows, columns, total);
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
