// SPDX-License-Identifier: Apache-2.0
// Pairs of a floating type and an index type, as the single argument of a kernel template for POLYOP_CPU_KERNEL.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace polyop {

template <class R, class I>
struct TypePair {
  using Real = R;
  using Int = I;
};

using F32I32 = TypePair<float, int32_t>;
using F32I64 = TypePair<float, int64_t>;
using F16I32 = TypePair<Half, int32_t>;
using F16I64 = TypePair<Half, int64_t>;
using BF16I32 = TypePair<BFloat16, int32_t>;
using BF16I64 = TypePair<BFloat16, int64_t>;

}  // namespace polyop
