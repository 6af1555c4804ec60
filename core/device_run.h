// A call of a GPU kernel for runtimes that hand over memory and a stream, and want outputs of their true size.
#pragma once

#include "core/op.h"

namespace polyop {

/// Copies and clears memory of the GPU, in a stream's order: CUDA's in a build with CUDA (kernels/cuda/memory.cu), or
/// in tests the memory of the CPU that plays one.
struct GpuMemory {
  /// A copy to the host waits for it.
  Status (*copy)(void* stream, void* to, const void* from, size_t bytes, bool to_host) = nullptr;
  Status (*zero)(void* stream, void* to, size_t bytes) = nullptr;
};
/// What was registered, when the program or library was loaded. Only where there are GPU kernels.
const GpuMemory& TheGpuMemory();
bool RegisterGpuMemory(const GpuMemory& memory);

/// The runtime's side of a call on a device.
struct DeviceBackend {
  void* self = nullptr;
  void* stream = nullptr;
  /// Memory on the device, aligned to 256 bytes, that lives until the call's work on the stream is done; or null.
  void* (*allocate)(void* self, size_t bytes) = nullptr;
};

/// Does what Call does on the CPU: checks, allocates scratch and outputs, and launches on the stream. Only where the
/// kernel finds an output's size does it wait, to read that size.
Status CallOnDevice(const Op& op, const void* params, std::span<const AnyTensor> inputs, OutputSource& outputs,
                    const DeviceBackend& backend);

}  // namespace polyop
