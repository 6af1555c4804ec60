// What a CUDA kernel's launch function gets from its caller: a stream and scratch memory on the device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/definition.h"

namespace polyop {

struct PreparedCall;

/// A launch function allocates its scratch from here, then launches on stream(). It neither synchronises nor reads
/// device memory, and what it allocates depends on shapes and attributes alone, and never shrinks when extents grow
/// (TensorRT asks for the largest shapes only); so a context that only measures finds out how much scratch a call
/// needs: see MeasureScratch.
class CudaContext {
 public:
  /// `stream` is a cudaStream_t. `scratch` is device memory, aligned to kAlignment.
  CudaContext(void* stream, void* scratch, size_t bytes)
      : stream_(stream), scratch_(reinterpret_cast<uintptr_t>(scratch)), capacity_(bytes) {}
  /// Counts what is allocated; launches do nothing.
  static CudaContext Measuring() {
    CudaContext context(nullptr, nullptr, ~size_t{0});
    context.measuring_ = true;
    return context;
  }

  static constexpr size_t kAlignment = 256;

  void* stream() const { return stream_; }
  bool measuring() const { return measuring_; }
  size_t used() const { return used_; }

  /// Uninitialised scratch for `count` elements; what it points to exists on the device only. If the caller gave too
  /// little, the result is null and the launches that follow fail.
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

  /// Whether a launch may go ahead.
  Status Check() const {
    if (!failed_) return Status::Ok();
    return Internal("out of memory: scratch on the device, of which the caller gave ", capacity_, " bytes");
  }

 private:
  void* stream_;
  uintptr_t scratch_;  // a number: a context that measures has no memory to point into
  size_t capacity_;
  mutable size_t used_ = 0;
  mutable bool failed_ = false;
  bool measuring_ = false;
};

/// The device of GPU kernels in this program: kCuda, or kCudaEmulated in tests, which link those.
Device GpuDevice();

/// The bytes of scratch that a launch needs. Of inputs and outputs only shapes are read.
Status MeasureScratch(const PreparedCall& call, std::span<const AnyTensor> inputs, size_t* bytes);

}  // namespace polyop
