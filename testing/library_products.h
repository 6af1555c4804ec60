// SPDX-License-Identifier: Apache-2.0
// Products of a library in tests of emulated CUDA kernels.
#pragma once

#include "core/cuda_context.h"
#include "kernels/cuda/library_product.h"

namespace polyop::testing {

/// Gives the emulation products of a library, which are loops. On a GPU it does nothing: tests/gpu runs kernels with
/// those of cuBLASLt, which PyTorch loads.
class LibraryProducts {
 public:
  /// After `products` of them, the library supports no more.
  explicit LibraryProducts(int64_t matrix_bytes = cuda_emulation::library_matrix_bytes, int64_t products = INT64_MAX)
      : matrix_bytes_(cuda_emulation::library_matrix_bytes), products_(products) {
    cuda_emulation::library_products_left = products;
    cuda_emulation::library_matrix_bytes = matrix_bytes;
  }
  ~LibraryProducts() {
    cuda_emulation::library_products_left = -1;
    cuda_emulation::library_matrix_bytes = matrix_bytes_;
  }
  LibraryProducts(const LibraryProducts&) = delete;
  LibraryProducts& operator=(const LibraryProducts&) = delete;

  /// Returns whether the emulation has computed one, or kernels are not emulated.
  bool Used() const {
    return GpuDevice() != Device::kCudaEmulated || cuda_emulation::library_products_left < products_;
  }

 private:
  const int64_t matrix_bytes_, products_;
};

}  // namespace polyop::testing
