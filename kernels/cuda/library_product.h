// SPDX-License-Identifier: Apache-2.0
// Products of matrices by cuBLASLt, if the process has loaded it, as PyTorch, JAX and ONNX Runtime do. polyop neither
// links nor loads it, so a kernel that uses it must also work without it (kernels/cuda/tile_product.h).
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/cuda_context.h"
#include "core/dtype.h"

namespace polyop {

namespace cuda_emulation {

/// The products that the emulation's library still supports; -1 if there is no library. For tests.
inline int64_t library_products_left = -1;

/// Bytes of scratch matrices that a kernel gives to the library at a time. Tests lower it, so that small inputs are
/// computed in parts.
inline int64_t library_matrix_bytes = int64_t{96} << 20;

}  // namespace cuda_emulation

/// Matrices in device memory, in the order of rows. Steps are in elements.
struct ProductMatrices {
  const void* data;
  int64_t row_step, matrix_step;
};

/// c = a * b, or c + a * b if `adds`, for `count` matrices: a of rows x depth, or its transpose if `a_transposed`, and
/// b of depth x columns, both of `type`, and c of `c_type`, which is `type` or f32. Sums are floats, without TF32, and
/// rounded once.
struct LibraryProduct {
  enum class Type { kF32, kF16, kBF16 };
  template <class T>
  static constexpr Type kTypeOf = std::is_same_v<T, float>  ? Type::kF32
                                  : std::is_same_v<T, Half> ? Type::kF16
                                                            : Type::kBF16;
  static constexpr int64_t kWorkspaceBytes = int64_t{8} << 20;

  Type type, c_type;
  int64_t count, rows, columns, depth;
  ProductMatrices a, b;
  bool a_transposed = false;
  void* c;
  int64_t c_row_step, c_matrix_step;
  bool adds;

  /// Returns whether the process has the library.
  static bool Available();
  /// Launches the product. Returns false, and computes nothing, if the library does not support it. Requires:
  /// Available(); `workspace` has kWorkspaceBytes; no extent is 0.
  bool Launch(const CudaContext& cuda, void* workspace) const;
};

}  // namespace polyop
