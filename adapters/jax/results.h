// The outputs of a call in XLA's buffers.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "adapters/c/polyop.h"
#include "xla/ffi/api/c_api.h"

namespace polyop::jax {

/// Returns polyop's element type, or -1 for one that polyop lacks.
int32_t TypeOf(XLA_FFI_DataType type);

/// XLA allocates outputs before the call. Where the kernel finds an extent, the buffer has its upper bound: the
/// elements found come first, and the rest is -1 in signed integers and 0 in other types. Without jax_enable_x64 there
/// is no 64-bit integer in JAX, so that a buffer of i32 receives an output of i64.
class Results {
 public:
  explicit Results(const XLA_FFI_Rets& rets) : rets_(rets) {}

  /// The memory of outputs for polyop_call, which this object must outlive.
  polyop_outputs outputs() { return {this, Allocate}; }

  /// Completes the buffers after the call. `found` are the output and the dimension whose extent the kernel found: the
  /// result behind the outputs receives it, an i32 without dimensions. Null if the kernel finds none.
  void Finish(const int64_t* found);

 private:
  struct Written {
    int32_t output;
    int32_t type;
    std::vector<int64_t> shape;
    std::unique_ptr<std::max_align_t[]> memory;  // null: XLA's buffer itself
  };

  static void* Allocate(void* self, int32_t output, int32_t type, int32_t rank, const int64_t* shape);
  const XLA_FFI_Buffer& Buffer(int64_t output) const { return *static_cast<const XLA_FFI_Buffer*>(rets_.rets[output]); }
  void Copy(const Written& written) const;

  const XLA_FFI_Rets& rets_;
  std::vector<Written> written_;
};

}  // namespace polyop::jax
