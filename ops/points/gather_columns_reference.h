// SPDX-License-Identifier: Apache-2.0
// Gathers of columns by index in double precision: for reference kernels only.
#pragma once

#include <algorithm>

#include "core/tensor.h"
#include "kernels/cpu/check_indices.h"

namespace polyop::reference {

/// Sets `to`, the gradient of `features` [batches, channels, columns], to the sums of the gradients `grad` [batches,
/// channels, picks...] of the copies of each column. Returns an error for an index out of range.
template <class I, int kRank>
Status GatherColumnsBackward(const Context& context, const Tensor<const double, kRank>& grad,
                             const Tensor<const double, 3>& features, const I* idx, int64_t picks, double* to) {
  const int64_t channels = features.dim(1), columns = features.dim(2);
  POLYOP_RETURN_IF_ERROR(CheckIndices(context, "idx", idx, features.dim(0) * picks, columns, "a column of 'features'"));
  std::fill_n(to, features.size(), 0.0);
  for (int64_t i = 0; i < grad.size(); ++i) {
    const int64_t row = i / picks, batch = row / channels;
    to[row * columns + idx[batch * picks + i % picks]] += grad[i];
  }
  return Status::Ok();
}

}  // namespace polyop::reference
