// A call of a GPU kernel for runtimes that hand over memory and a stream, and want outputs of their true size.
#pragma once

#include "core/op.h"

namespace polyop {

/// The runtime's side of a call on a device.
struct DeviceBackend {
  void* self = nullptr;
  void* stream = nullptr;
  /// Memory on the device, aligned to 256 bytes, that lives until the call's work on the stream is done; or null.
  void* (*allocate)(void* self, size_t bytes) = nullptr;
  /// On the stream; a copy to the host waits for it.
  Status (*copy)(void* stream, void* to, const void* from, size_t bytes, bool to_host) = nullptr;
};

/// Does what `op.Run(kernel, …)` does on the CPU: checks, allocates scratch and outputs, and launches on the stream.
/// Only where the kernel finds an output's size does it wait, to read that size.
Status RunOnDevice(const Op& op, const Kernel& kernel, const void* params, std::span<const AnyTensor> inputs,
                   OutputSource& outputs, const DeviceBackend& backend);

/// The copies of CUDA's runtime, for DeviceBackend::copy; only where polyop is built with CUDA.
Status CudaCopy(void* stream, void* to, const void* from, size_t bytes, bool to_host);

}  // namespace polyop
