// What the ends of segments must satisfy: the CPU's kernel and the reference refuse the same.
#pragma once

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

template <class I>
Status CheckIndptr(const Tensor<const I, 1>& indptr, int64_t rows) {
  int64_t before = 0;
  for (int64_t m = 0; m < indptr.dim(0); ++m) {
    if (indptr[m] < before || indptr[m] > rows) {
      return InvalidArgument("'indptr'[", m, "] is ", int64_t{indptr[m]}, ", wanted a value in [", before, ", ", rows,
                             "]: from the one before it to the rows of 'src'");
    }
    before = indptr[m];
  }
  return Status::Ok();
}

}  // namespace polyop
