// SPDX-License-Identifier: Apache-2.0
// Calls a GPU kernel for runtimes that provide memory and a stream and need outputs of their exact size. It does not
// include CUDA's headers: kernels/cuda/memory.cu registers the functions that use CUDA.
#pragma once

#include "core/op.h"

namespace polyop {

struct PreparedCall;

/// Copies and clears GPU memory, in stream order. In a build with CUDA these are CUDA's functions
/// (kernels/cuda/memory.cu); in tests with emulated kernels they use host memory.
struct GpuMemory {
  /// Copies `bytes`. Waits for the copy if `to_host`.
  Status (*copy)(void* stream, void* to, const void* from, size_t bytes, bool to_host) = nullptr;
  Status (*zero)(void* stream, void* to, size_t bytes) = nullptr;
};
/// Returns the registered functions. Requires: the program or library has GPU kernels.
const GpuMemory& TheGpuMemory();
bool RegisterGpuMemory(const GpuMemory& memory);

/// A runtime's stream and allocator for a call on a device.
struct DeviceBackend {
  void* self = nullptr;
  void* stream = nullptr;
  /// Returns device memory aligned to 256 bytes, or null. It lives until the call's work on the stream is done.
  void* (*allocate)(void* self, size_t bytes) = nullptr;
};

/// Like Call, for a GPU: checks the call, allocates scratch and outputs, and launches on the stream without waiting for
/// it. Outputs of found size are allocated for their upper bound. `call` receives the checked call before outputs are
/// allocated.
Status LaunchOnDevice(const Op& op, const void* params, std::span<const AnyTensor> inputs, OutputSource& outputs,
                      const DeviceBackend& backend, PreparedCall* call);

/// Like LaunchOnDevice, but all outputs have their exact size. Waits for the stream only if the kernel finds a size, to
/// read that size.
Status CallOnDevice(const Op& op, const void* params, std::span<const AnyTensor> inputs, OutputSource& outputs,
                    const DeviceBackend& backend);

}  // namespace polyop
