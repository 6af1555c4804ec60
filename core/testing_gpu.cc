#include "core/testing_gpu.h"

#include <cstring>
#include <vector>

#ifdef POLYOP_CUDA
#include <cuda_runtime_api.h>
#else
#include "core/cuda.h"
#endif

namespace polyop::testing {
namespace {

constexpr int kGarbage = 0xA5;

}  // namespace

#ifdef POLYOP_CUDA

namespace {

Status FromCuda(cudaError_t error) {
  return error == cudaSuccess ? Status::Ok() : Internal("CUDA: ", cudaGetErrorString(error));
}

}  // namespace

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
    return error == cudaSuccess && count > 0 ? std::string() : Concat("there is no GPU: ", cudaGetErrorString(error));
  }();
  return why;
}

void TestGpu::RunBackwards(bool) {}

void* TestGpu::Allocate(size_t bytes) {
  void* piece = nullptr;
  if (bytes > most_bytes_ || cudaMalloc(&piece, bytes > 0 ? bytes : 1) != cudaSuccess) return nullptr;
  memory_->pieces.push_back(piece);
  return cudaMemset(piece, kGarbage, bytes) == cudaSuccess ? piece : nullptr;
}

Status TestGpu::Upload(void* to, const void* from, size_t bytes) {
  return FromCuda(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
}

Status TestGpu::Download(void* to, const void* from, size_t bytes) { return CudaCopy(nullptr, to, from, bytes, true); }

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
  if (bytes > most_bytes_) return nullptr;
  char* const piece = memory_->pieces.emplace_back(new char[bytes]).get();
  std::memset(piece, kGarbage, bytes);
  return piece;
}

Status TestGpu::Upload(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return Status::Ok();
}

Status TestGpu::Download(void* to, const void* from, size_t bytes) { return Upload(to, from, bytes); }

#endif

TestGpu::TestGpu(size_t most_bytes) : most_bytes_(most_bytes), memory_(new Memory) {
  backend_.self = this;
  backend_.allocate = [](void* self, size_t bytes) { return static_cast<TestGpu*>(self)->Allocate(bytes); };
#ifdef POLYOP_CUDA
  backend_.copy = CudaCopy;
#else
  backend_.copy = [](void*, void* to, const void* from, size_t bytes, bool) {
    std::memcpy(to, from, bytes);
    return Status::Ok();
  };
#endif
}

TestGpu::~TestGpu() = default;

}  // namespace polyop::testing
