// SPDX-License-Identifier: Apache-2.0
#include "testing/gpu.h"

#include <cstring>
#include <vector>

#ifdef POLYOP_CUDA
#include <cuda_runtime_api.h>
#else
#include "kernels/cuda/cuda.h"
#endif

namespace polyop::testing {
namespace {

constexpr int kGarbage = 0xA5;

size_t BytesOf(const AnyTensor& tensor) {
  return static_cast<size_t>(tensor.shape.NumElements().value()) * SizeOf(tensor.dtype);
}

#ifdef POLYOP_CUDA
Status CopyToGpu(void* to, const void* from, size_t bytes) {
  const cudaError_t error = cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice);
  return error == cudaSuccess ? Status::Ok() : Internal("CUDA: ", cudaGetErrorString(error));
}
#else
Status Copy(void*, void* to, const void* from, size_t bytes, bool) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return Status::Ok();
}

Status Zero(void*, void* to, size_t bytes) {
  std::memset(to, 0, bytes);
  return Status::Ok();
}

[[maybe_unused]] const bool registered = RegisterGpuMemory({Copy, Zero});

Status CopyToGpu(void* to, const void* from, size_t bytes) { return Copy(nullptr, to, from, bytes, false); }
#endif

}  // namespace

#ifdef POLYOP_CUDA

struct TestGpu::Memory {
  std::vector<void*> pieces;
  ~Memory() {
    for (void* piece : pieces) cudaFree(piece);
  }
};

const std::string& TestGpu::Missing() {
  static const std::string why = [] {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    return error == cudaSuccess && count > 0 ? std::string() : Concat("no GPU: ", cudaGetErrorString(error));
  }();
  return why;
}

void TestGpu::RunBackwards(bool) {}

void* TestGpu::Allocate(size_t bytes) {
  void* piece = nullptr;
  if (bytes > max_bytes_ || cudaMalloc(&piece, bytes > 0 ? bytes : 1) != cudaSuccess) return nullptr;
  memory_->pieces.push_back(piece);
  return cudaMemset(piece, kGarbage, bytes) == cudaSuccess ? piece : nullptr;
}

#else

struct TestGpu::Memory {
  std::vector<std::unique_ptr<char[]> > pieces;
};

const std::string& TestGpu::Missing() {
  static const std::string nothing;
  return nothing;
}

void TestGpu::RunBackwards(bool backwards) { cuda_emulation::reversed = backwards; }

void* TestGpu::Allocate(size_t bytes) {
  if (bytes > max_bytes_) return nullptr;
  char* const piece = memory_->pieces.emplace_back(new char[bytes]).get();
  std::memset(piece, kGarbage, bytes);
  return piece;
}

#endif

Status TestGpu::AllocateFor(const AnyTensor& tensor, void** there) {
  const size_t front = misaligned_ ? SizeOf(tensor.dtype) : 0;
  auto* const piece = static_cast<char*>(Allocate(front + BytesOf(tensor)));
  if (piece == nullptr) return Internal("out of GPU memory: ", BytesOf(tensor), " bytes");
  *there = piece + front;
  return Status::Ok();
}

Status TestGpu::Upload(const AnyTensor& tensor, void** there) {
  POLYOP_RETURN_IF_ERROR(AllocateFor(tensor, there));
  return CopyToGpu(*there, tensor.data, BytesOf(tensor));
}

Status TestGpu::Download(const AnyTensor& tensor, const void* there) {
  return TheGpuMemory().copy(nullptr, tensor.data, there, BytesOf(tensor), true);
}

TestGpu::TestGpu(size_t max_bytes, bool misaligned)
    : max_bytes_(max_bytes), misaligned_(misaligned), memory_(new Memory) {
  backend_.self = this;
  backend_.allocate = [](void* self, size_t bytes) { return static_cast<TestGpu*>(self)->Allocate(bytes); };
}

TestGpu::~TestGpu() = default;

}  // namespace polyop::testing
