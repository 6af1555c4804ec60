// The GPU of the tests: the CPU that plays one (kernels/cuda/cuda.h), or, in a build with CUDA, a real one.
#pragma once

#include <cstddef>
#include <memory>

#include "core/device_run.h"
#include "core/status.h"

namespace polyop::testing {

/// Memory on that GPU, for one call. Every piece is exactly as large as was asked, so that sanitizers see where it
/// ends, and full of garbage.
class TestGpu {
 public:
  /// Empty, or why nothing can run on the GPU here.
  static const std::string& Missing();
  /// From now on, blocks and threads of the emulation run backwards (or forwards again).
  static void RunBackwards(bool backwards);

  /// More than `most_bytes` in one piece are refused. With `misaligned`, tensors (not scratch) begin at multiples of
  /// their elements' size only.
  explicit TestGpu(size_t most_bytes, bool misaligned = false);
  ~TestGpu();
  TestGpu(const TestGpu&) = delete;
  TestGpu& operator=(const TestGpu&) = delete;

  /// Null when there is no memory.
  void* Allocate(size_t bytes);
  /// Memory for the elements of a tensor on the host.
  Status AllocateFor(const AnyTensor& tensor, void** there);
  /// A copy of its elements.
  Status Upload(const AnyTensor& tensor, void** there);
  /// Waits for what runs.
  Status Download(const AnyTensor& tensor, const void* there);

  const DeviceBackend& backend() const { return backend_; }

 private:
  struct Memory;
  size_t most_bytes_;
  bool misaligned_;
  std::unique_ptr<Memory> memory_;
  DeviceBackend backend_;
};

}  // namespace polyop::testing
