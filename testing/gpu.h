// SPDX-License-Identifier: Apache-2.0
// The GPU of the tests: emulated on the CPU (kernels/cuda/cuda.h), or a real one in a build with CUDA.
#pragma once

#include <cstddef>
#include <memory>

#include "core/device_run.h"
#include "core/status.h"

namespace polyop::testing {

/// Memory on this GPU, for one call. Every block has exactly the requested size, so that sanitizers detect accesses
/// outside of it, and is filled with garbage.
class TestGpu {
 public:
  /// Returns why no GPU is available, or an empty text.
  static const std::string& Missing();
  /// Sets whether the emulation runs blocks and threads in reverse order.
  static void RunBackwards(bool backwards);

  /// Blocks of more than `max_bytes` cannot be allocated. If `misaligned`, tensors (not scratch) are aligned to their
  /// element size only.
  explicit TestGpu(size_t max_bytes, bool misaligned = false);
  ~TestGpu();
  TestGpu(const TestGpu&) = delete;
  TestGpu& operator=(const TestGpu&) = delete;

  /// Returns null if out of memory.
  void* Allocate(size_t bytes);
  /// Allocates memory for the elements of a host tensor.
  Status AllocateFor(const AnyTensor& tensor, void** there);
  /// Allocates memory and copies the tensor's elements to it.
  Status Upload(const AnyTensor& tensor, void** there);
  /// Waits for running work and copies the elements to the tensor.
  Status Download(const AnyTensor& tensor, const void* there);

  const DeviceBackend& backend() const { return backend_; }

 private:
  struct Memory;
  size_t max_bytes_;
  bool misaligned_;
  std::unique_ptr<Memory> memory_;
  DeviceBackend backend_;
};

}  // namespace polyop::testing
