// SPDX-License-Identifier: Apache-2.0
// The launch context of CUDA kernels: a stream and scratch memory on the device. It does not include CUDA's headers
// (the stream is a void*), so core and adapters build without CUDA, and tests run emulated CUDA kernels on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/definition.h"

namespace polyop {

struct PreparedCall;

/// A launch function allocates its scratch from the context, then launches on stream(). It neither synchronises nor
/// reads device memory. The allocated size depends only on shapes and attributes and never shrinks when extents grow
/// (TensorRT provides only the largest shapes), so a measuring context determines how much scratch a call needs: see
/// MeasureScratch.
class CudaContext {
 public:
  /// `stream` is a cudaStream_t. `scratch` is device memory, aligned to kAlignment.
  CudaContext(void* stream, void* scratch, size_t bytes)
      : stream_(stream), scratch_(reinterpret_cast<uintptr_t>(scratch)), capacity_(bytes) {}
  /// Returns a context that only counts allocations. Launches with it do nothing.
  static CudaContext Measuring() {
    CudaContext context(nullptr, nullptr, ~size_t{0});
    context.measuring_ = true;
    return context;
  }

  static constexpr size_t kAlignment = 256;

  void* stream() const { return stream_; }
  bool measuring() const { return measuring_; }
  size_t used() const { return used_; }

  /// Returns uninitialised scratch for `count` elements, in device memory. If too little scratch is left, returns null,
  /// and the following launches fail.
  template <class T>
  T* Allocate(int64_t count) const {
    size_t bytes = 0;
    if (count < 0 || __builtin_mul_overflow(static_cast<size_t>(count), sizeof(T), &bytes) ||
        __builtin_add_overflow(bytes, kAlignment - 1, &bytes) || bytes / kAlignment * kAlignment > capacity_ - used_) {
      failed_ = true;
      return nullptr;
    }
    const uintptr_t at = scratch_ + used_;
    used_ += bytes / kAlignment * kAlignment;
    return reinterpret_cast<T*>(at);
  }

  /// Returns an error if an allocation failed: then nothing may be launched.
  Status Check() const {
    if (!failed_) return Status::Ok();
    return Internal("out of device memory: ", capacity_, " bytes of scratch are too few");
  }

 private:
  void* stream_;
  uintptr_t scratch_;  // an integer, because a measuring context has no memory to point to
  size_t capacity_;
  mutable size_t used_ = 0;
  mutable bool failed_ = false;
  bool measuring_ = false;
};

/// Returns the device of the GPU kernels in this program: kCuda, or kCudaEmulated in tests, which link the emulated
/// ones.
Device GpuDevice();

/// Sets `bytes` to the scratch size of a launch. Reads only the shapes of inputs and outputs.
Status MeasureScratch(const PreparedCall& call, std::span<const AnyTensor> inputs, size_t* bytes);

}  // namespace polyop
