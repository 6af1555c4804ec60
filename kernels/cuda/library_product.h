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

/// Whether the emulation has products of a library. For tests.
inline bool has_library_products = false;

}  // namespace cuda_emulation

/// Matrices in device memory, in the order of rows. Steps are in elements.
struct ProductMatrices {
  const void* data;
  int64_t row_step, matrix_step;
};

/// c = a * b, or c + a * b if `adds`, for `count` matrices: a of rows x depth, b of depth x columns. Sums are floats,
/// without TF32, and rounded once.
struct LibraryProduct {
  enum class Type { kF32, kF16, kBF16 };
  template <class T>
  static constexpr Type kTypeOf = std::is_same_v<T, float>  ? Type::kF32
                                  : std::is_same_v<T, Half> ? Type::kF16
                                                            : Type::kBF16;
  static constexpr int64_t kWorkspaceBytes = int64_t{8} << 20;

  Type type;
  int64_t count, rows, columns, depth;
  ProductMatrices a, b;
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
