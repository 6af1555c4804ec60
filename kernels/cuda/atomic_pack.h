// SPDX-License-Identifier: Apache-2.0
// Atomic additions to neighbouring sums.
#pragma once

#include "kernels/cuda/atomic_add.h"
#include "kernels/cuda/pack.h"

namespace polyop {

/// Whether the GPU adds four neighbouring sums with one instruction, as of sm_90.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
inline constexpr bool kAddsPacksAtomically = false;
#else
inline constexpr bool kAddsPacksAtomically = true;
#endif

/// Adds four values to neighbouring sums that other threads add to. Requires: `at` is aligned to 16 bytes.
POLYOP_DEVICE inline void AtomicAdd(Pack<float, 4>* at, const Pack<float, 4>& values) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  atomicAdd(reinterpret_cast<float4*>(at), make_float4(values.of[0], values.of[1], values.of[2], values.of[3]));
#else
  for (int i = 0; i < 4; ++i) AtomicAdd(&at->of[i], values.of[i]);
#endif
}

/// Adds one value. Thus kernels are written once for packs of one and of four.
POLYOP_DEVICE inline void AtomicAdd(Pack<float, 1>* at, const Pack<float, 1>& value) {
  AtomicAdd(&at->of[0], value.of[0]);
}

}  // namespace polyop
