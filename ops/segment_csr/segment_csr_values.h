// A check of the segment boundaries, shared by the CPU kernel and the reference.
#pragma once

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

template <class I>
Status CheckIndptr(const Tensor<const I, 1>& indptr, int64_t rows) {
  int64_t before = 0;
  for (int64_t m = 0; m < indptr.dim(0); ++m) {
    if (indptr[m] < before || indptr[m] > rows) {
      return InvalidArgument("'indptr'[", m, "]: expected a value in [", before, ", ", rows,
                             "], from the preceding one to the number of rows of 'src', got ", int64_t{indptr[m]});
    }
    before = indptr[m];
  }
  return Status::Ok();
}

}  // namespace polyop
