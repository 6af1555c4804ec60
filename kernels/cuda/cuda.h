// SPDX-License-Identifier: Apache-2.0
// CUDA kernels that also compile as plain C++, where blocks and threads run sequentially on the CPU. Thus a machine
// without a GPU can test every index that a launch computes.
//
//   template <class T>                                              // ops/my_op/my_op_cuda.cu
//   Status MyOpCuda(const MyOp& op, const CudaContext& cuda, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> b) {
//     return ForEach(cuda, b.size(), [=] POLYOP_DEVICE(int64_t i) { b[i] = …; });
//   }
//   POLYOP_CUDA_KERNELS(MyOp, MyOpCuda, float, Half, BFloat16);
//
// Cooperating threads are written as phases of a block with a barrier after each phase. Values that a thread keeps
// between phases are in block.Local, shared values in block.Shared:
//
//   ForBlocks(cuda, blocks, 256, bytes, [=] POLYOP_DEVICE(Block& block) {
//     float* sums = block.Shared<float>(256);
//     block.ForThreads([&](int t) { sums[t] = …; });
//     block.ForThreads([&](int t) { … sums[255 - t] … });
//   });
//
// A phase of ForWarps runs once per warp, whose 32 threads cooperate (kernels/cuda/warp_sums.h). The number of phases
// must not depend on the thread. Products and sums are not fused (nvcc --fmad=false) unless a kernel does so
// explicitly, so that comparisons have the same result as on the CPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/cuda_context.h"
#include "core/host_device.h"
#include "core/operator.h"
#include "kernels/cuda/divider.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define POLYOP_DEVICE __device__
#define POLYOP_CUDA_KERNEL_AS(OP, ID, ...) POLYOP_KERNEL(OP, ::polyop::Device::kCuda, ID, __VA_ARGS__)
#else
#include <cstdlib>
#include <memory>
#include <vector>
#define POLYOP_DEVICE
#define POLYOP_CUDA_KERNEL_AS(OP, ID, ...) POLYOP_KERNEL(OP, ::polyop::Device::kCudaEmulated, ID, __VA_ARGS__)
#endif
/// Registers a kernel.
#define POLYOP_CUDA_KERNEL(OP, FUNCTION) POLYOP_CUDA_KERNEL_AS(OP, OP##FUNCTION, FUNCTION)
/// Registers a kernel template for several types. Two or more template arguments are listed in parentheses.
#define POLYOP_CUDA_KERNELS(OP, FUNCTION, ...) POLYOP_FOR_EACH_TYPE(POLYOP_CUDA_KERNEL_AS, OP, FUNCTION, __VA_ARGS__)

namespace polyop {

inline constexpr int kThreadsPerBlock = 256;
/// Bytes of shared memory per block that every GPU supports.
inline constexpr int kMaxSharedBytes = 48 * 1024;

/// Returns the number of blocks of `per_block` items that cover `count`.
constexpr int64_t BlocksFor(int64_t count, int64_t per_block) { return (count + per_block - 1) / per_block; }

/// Returns the number of blocks of `threads` threads that share a multiprocessor unless a kernel requires more.
constexpr int DefaultMinBlocks(int threads) { return threads <= kThreadsPerBlock ? 2 : 1; }

namespace cuda_internal {

inline Status CheckBlock(int threads, int max_threads, int64_t shared_bytes) {
  if (threads > max_threads)
    return Internal("CUDA: expected at most ", max_threads, " threads per block, got ", threads);
  if (shared_bytes > kMaxSharedBytes) {
    return Internal("CUDA: expected at most ", kMaxSharedBytes, " bytes of shared memory, got ", shared_bytes);
  }
  return Status::Ok();
}

}  // namespace cuda_internal

#ifdef __CUDACC__

class Block {
 public:
  __device__ Block(int64_t i, char* shared) : index(i), shared_(shared) {}

  const int64_t index;

  __device__ int threads() const { return static_cast<int>(blockDim.x); }
  /// Calls f(thread) for every thread of the block, and waits for all of them.
  template <class F>
  __device__ void ForThreads(const F& f) {
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
  }
  /// Calls f(warp) with all 32 threads of every warp, and waits for all of them.
  template <class F>
  __device__ void ForWarps(const F& f) {
    f(static_cast<int>(threadIdx.x / 32));
    __syncthreads();
  }
  /// Calls load(thread), compute(warp) and store(thread, what load returned) without waiting in between, then waits for
  /// all threads. Thus some warps load while others compute. `compute` must not read what `store` writes.
  template <class Load, class Compute, class Store>
  __device__ void ForThreadsAndWarps(const Load& load, const Compute& compute, const Store& store) {
    const auto loaded = load(static_cast<int>(threadIdx.x));
    compute(static_cast<int>(threadIdx.x / 32));
    store(static_cast<int>(threadIdx.x), loaded);
    __syncthreads();
  }
  /// Returns the next `count` elements of the block's shared memory.
  template <class T>
  __device__ T* Shared(int count) {
    T* const at = reinterpret_cast<T*>(shared_);
    shared_ += (count * sizeof(T) + 15) / 16 * 16;
    return at;
  }
  /// A variable with a separate value per thread.
  template <class T>
  class Local {
   public:
    __device__ explicit Local(const Block&) {}
    __device__ T& operator[](int) { return value_; }

   private:
    T value_;
  };
  /// A variable with a separate value per warp.
  template <class T>
  using WarpLocal = Local<T>;

 private:
  char* shared_;
};

namespace cuda_internal {

template <class Body>
__global__ void __launch_bounds__(kThreadsPerBlock) EachKernel(int64_t count, Body body) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) body(i);
}

// Limits `blocks` to what the threads of a multiprocessor allow.
constexpr int BlocksThatFit(int threads, int blocks) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  constexpr int kThreads = 1024;
#else
  constexpr int kThreads = 1536;
#endif
  return blocks * threads <= kThreads ? blocks : threads <= kThreads ? kThreads / threads : 1;
}

// The bounds limit registers so that a block can start and `kMinBlocks` blocks share a multiprocessor.
template <int kMaxThreads, int kMinBlocks, class Body>
__global__ void __launch_bounds__(kMaxThreads, BlocksThatFit(kMaxThreads, kMinBlocks))
    BlocksKernel(int64_t blocks, Body body) {
  extern __shared__ __align__(32) char shared[];
  for (int64_t i = blockIdx.x; i < blocks; i += gridDim.x) {
    Block block(i, shared);
    body(block);
  }
}

inline Status Launched() {
  const cudaError_t error = cudaPeekAtLastError();
  if (error == cudaSuccess) return Status::Ok();
  return Internal("CUDA: ", cudaGetErrorString(cudaGetLastError()));
}

}  // namespace cuda_internal

/// Calls body(i) for each i in [0, count), on as many threads as fit.
template <class Body>
Status ForEach(const CudaContext& cuda, int64_t count, const Body& body) {
  POLYOP_RETURN_IF_ERROR(cuda.Check());
  if (count <= 0 || cuda.measuring()) return Status::Ok();
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(BlocksFor(count, kThreadsPerBlock), 1 << 20));
  cuda_internal::EachKernel<<<blocks, kThreadsPerBlock, 0, static_cast<cudaStream_t>(cuda.stream())>>>(count, body);
  return cuda_internal::Launched();
}

/// Calls body(block) for `blocks` blocks of `threads` threads with `shared_bytes` of shared memory each. Requires:
/// threads <= kMaxThreads. At least kMinBlocks blocks share a multiprocessor, which limits registers: with more than
/// two of the usual size, larger kernels spill.
template <int kMaxThreads = kThreadsPerBlock, int kMinBlocks = DefaultMinBlocks(kMaxThreads), class Body>
Status ForBlocks(const CudaContext& cuda, int64_t blocks, int threads, int64_t shared_bytes, const Body& body) {
  POLYOP_RETURN_IF_ERROR(cuda.Check());
  POLYOP_RETURN_IF_ERROR(cuda_internal::CheckBlock(threads, kMaxThreads, shared_bytes));
  if (blocks <= 0 || cuda.measuring()) return Status::Ok();
  const auto grid = static_cast<unsigned>(std::min<int64_t>(blocks, 1 << 30));
  cuda_internal::BlocksKernel<kMaxThreads, kMinBlocks>
      <<<grid, threads, static_cast<size_t>(shared_bytes), static_cast<cudaStream_t>(cuda.stream())>>>(blocks, body);
  return cuda_internal::Launched();
}

/// Copies `bytes` bytes within device memory.
inline Status CopyOnDevice(const CudaContext& cuda, void* to, const void* from, size_t bytes) {
  POLYOP_RETURN_IF_ERROR(cuda.Check());
  if (bytes == 0 || cuda.measuring()) return Status::Ok();
  const auto stream = static_cast<cudaStream_t>(cuda.stream());
  const cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
  return error == cudaSuccess ? Status::Ok() : Internal("CUDA: ", cudaGetErrorString(error));
}

/// Sets *at to max(*at, value) atomically.
__device__ inline void AtomicMax(int64_t* at, int64_t value) {
  atomicMax(reinterpret_cast<long long*>(at), static_cast<long long>(value));
}

#else  // emulation on one CPU thread

namespace cuda_emulation {

/// Reverses the order of blocks and threads, which changes the result of a kernel that lacks a barrier or whose threads
/// write the same address.
inline bool reversed = false;

template <class F>
void InOrder(int64_t count, const F& f) {
  for (int64_t i = 0; i < count; ++i) f(reversed ? count - 1 - i : i);
}

}  // namespace cuda_emulation

class Block {
 public:
  Block(int64_t i, int threads, int64_t shared_bytes) : index(i), threads_(threads), shared_left_(shared_bytes) {}

  const int64_t index;

  int threads() const { return threads_; }
  template <class F>
  void ForThreads(const F& f) {
    cuda_emulation::InOrder(threads_, [&](int64_t t) { f(static_cast<int>(t)); });
  }
  template <class F>
  void ForWarps(const F& f) {
    cuda_emulation::InOrder(threads_ / 32, [&](int64_t warp) { f(static_cast<int>(warp)); });
  }
  template <class Load, class Compute, class Store>
  void ForThreadsAndWarps(const Load& load, const Compute& compute, const Store& store) {
    ForThreads([&](int t) { store(t, load(t)); });
    ForWarps(compute);
  }
  // Allocates each piece separately, so that sanitizers detect overruns, and fills it with garbage.
  template <class T>
  T* Shared(int count) {
    const auto bytes = static_cast<int64_t>(count) * static_cast<int64_t>(sizeof(T));
    shared_left_ -= (bytes + 15) / 16 * 16;
    if (shared_left_ < 0) std::abort();  // the launch requested too little
    shared_.emplace_back(new char[static_cast<size_t>(bytes)]);
    std::fill_n(shared_.back().get(), bytes, static_cast<char>(0xA5));
    return reinterpret_cast<T*>(shared_.back().get());
  }
  template <class T>
  class Local {
   public:
    explicit Local(const Block& block) : Local(block.threads()) {}
    T& operator[](int thread) { return values_[static_cast<size_t>(thread)]; }

   protected:
    explicit Local(int count) : values_(new T[static_cast<size_t>(count)]) {}

   private:
    std::unique_ptr<T[]> values_;
  };
  template <class T>
  class WarpLocal : public Local<T> {
   public:
    explicit WarpLocal(const Block& block) : Local<T>(block.threads() / 32) {}
  };

 private:
  int threads_;
  int64_t shared_left_;
  std::vector<std::unique_ptr<char[]>> shared_;
};

template <class Body>
Status ForEach(const CudaContext& cuda, int64_t count, const Body& body) {
  POLYOP_RETURN_IF_ERROR(cuda.Check());
  if (!cuda.measuring()) cuda_emulation::InOrder(count, body);
  return Status::Ok();
}

template <int kMaxThreads = kThreadsPerBlock, int kMinBlocks = DefaultMinBlocks(kMaxThreads), class Body>
Status ForBlocks(const CudaContext& cuda, int64_t blocks, int threads, int64_t shared_bytes, const Body& body) {
  POLYOP_RETURN_IF_ERROR(cuda.Check());
  POLYOP_RETURN_IF_ERROR(cuda_internal::CheckBlock(threads, kMaxThreads, shared_bytes));
  if (cuda.measuring()) return Status::Ok();
  cuda_emulation::InOrder(blocks, [&](int64_t i) {
    Block block(i, threads, shared_bytes);
    body(block);
  });
  return Status::Ok();
}

inline Status CopyOnDevice(const CudaContext& cuda, void* to, const void* from, size_t bytes) {
  POLYOP_RETURN_IF_ERROR(cuda.Check());
  if (bytes > 0 && !cuda.measuring()) std::copy_n(static_cast<const char*>(from), bytes, static_cast<char*>(to));
  return Status::Ok();
}

inline void AtomicMax(int64_t* at, int64_t value) { *at = std::max(*at, value); }

#endif

POLYOP_HD inline int PopCount(uint64_t bits) {
#ifdef __CUDA_ARCH__
  return __popcll(bits);
#else
  return __builtin_popcountll(bits);
#endif
}

}  // namespace polyop
