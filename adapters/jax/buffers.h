// SPDX-License-Identifier: Apache-2.0
// XLA's buffers as the tensors of a call.
#pragma once

#include <cstdint>

#include "adapters/c/polyop.h"
#include "xla/ffi/api/c_api.h"

namespace polyop::jax {

/// A buffer as a tensor: u32[..., 2] stands for i64[...].
class BufferView {
 public:
  explicit BufferView(const void* buffer) : buffer_(*static_cast<const XLA_FFI_Buffer*>(buffer)) {}

  void* data() const { return buffer_.data; }
  /// Returns polyop's element type, or -1 for one that polyop lacks.
  int32_t type() const;
  int32_t rank() const;
  const int64_t* shape() const { return buffer_.dims; }
  /// Returns 0 if polyop lacks the element type.
  int64_t bytes() const;

 private:
  bool has_halves() const;

  const XLA_FFI_Buffer& buffer_;
};

/// The outputs of a call, which XLA allocates before it.
class Results {
 public:
  /// `found` are the output and the dimension whose extent the kernel finds, or null. The last result is this extent.
  Results(const XLA_FFI_Rets& rets, const int64_t* found) : rets_(rets), found_(found) {}

  /// The memory of outputs for polyop_call, which this object must outlive. Sets the found extent.
  polyop_outputs outputs() { return {this, Allocate}; }

  /// Returns the buffer of an output, or null if the tensor does not fit into it.
  void* Data(int32_t output, int32_t type, int32_t rank, const int64_t* shape) const;
  /// Returns the memory of the found extent if it is this output's, else null.
  int64_t* CountOf(int32_t output) const;

 private:
  static void* Allocate(void* self, int32_t output, int32_t type, int32_t rank, const int64_t* shape);

  const XLA_FFI_Rets& rets_;
  const int64_t* found_;
};

}  // namespace polyop::jax
