// SPDX-License-Identifier: Apache-2.0
// The pixels where a mask is positive, for CUDA kernels.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/dtype.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/prefix_sums.h"

namespace polyop {

template <class M>
POLYOP_HD bool IsMasked(M mask) {
  if constexpr (std::is_same_v<M, bool>) {
    return mask;
  } else {
    return ToFloat(mask) > 0;
  }
}

/// The pixels in ascending order, and their number, in device memory.
struct MaskedPixelsCuda {
  const int64_t *listed, *total;

  template <class M>
  static Status List(const CudaContext& cuda, const M* masks, int64_t pixels, MaskedPixelsCuda* to) {
    int64_t* const before = cuda.Allocate<int64_t>(pixels);
    int64_t* const listed = cuda.Allocate<int64_t>(pixels);
    int64_t* const total = cuda.Allocate<int64_t>(1);
    *to = {listed, total};
    POLYOP_RETURN_IF_ERROR(PrefixSums(
        cuda, pixels, [=] POLYOP_DEVICE(int64_t i) { return static_cast<int64_t>(IsMasked(masks[i])); }, before,
        total));
    return ForEach(cuda, pixels, [=] POLYOP_DEVICE(int64_t i) {
      if (IsMasked(masks[i])) listed[before[i]] = i;
    });
  }
};

}  // namespace polyop
