// SPDX-License-Identifier: Apache-2.0
// The stream and the memory of a call on a GPU, through XLA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "adapters/c/polyop.h"
#include "adapters/jax/buffers.h"
#include "core/status.h"
#include "xla/ffi/api/c_api.h"

namespace polyop::jax {

/// Returns its scratch memory to XLA when it is destroyed: XLA reuses memory in the order of the stream.
class Device {
 public:
  Device(const XLA_FFI_CallFrame& frame, const Results& results) : frame_(frame), results_(results) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  /// Sets `device` to the call's stream and to the memory of this object, which it must not outlive.
  Status Open(polyop_device* device);

 private:
  struct Block {
    void* data;
    size_t bytes;
  };

  static void* Allocate(void* self, size_t bytes);
  static void* AllocateFound(void* self, int32_t output, int32_t type, int32_t rank, const int64_t* shape,
                             int64_t** count);

  const XLA_FFI_CallFrame& frame_;
  const Results& results_;
  std::vector<Block> blocks_;
};

}  // namespace polyop::jax
