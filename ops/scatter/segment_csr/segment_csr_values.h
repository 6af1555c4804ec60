// SPDX-License-Identifier: Apache-2.0
// A check of the segment boundaries, shared by the CPU kernel and the reference.
#pragma once

#include "core/tensor.h"
#include "kernels/cpu/check_indices.h"

namespace polyop {

template <class I>
Status CheckIndptr(const Tensor<const I, 1>& indptr, int64_t rows) {
  return CheckBoundaries("indptr", indptr.data(), indptr.dim(0), rows, "the number of rows of 'src'");
}

}  // namespace polyop
