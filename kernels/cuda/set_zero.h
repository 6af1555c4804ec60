// SPDX-License-Identifier: Apache-2.0
// Tensors of zeros on the GPU.
#pragma once

#include "kernels/cuda/cuda.h"

namespace polyop {

/// Sets `count` elements to 0.
template <class T>
Status SetZero(const CudaContext& cuda, int64_t count, T* to) {
  return ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) { to[i] = FromFloat<T>(0); });
}

}  // namespace polyop
