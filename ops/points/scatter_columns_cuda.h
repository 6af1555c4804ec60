// SPDX-License-Identifier: Apache-2.0
// Adds columns to the columns that they were gathered from, for the gradients of gathers by index, on the GPU.
#pragma once

#include "core/dtype.h"
#include "kernels/cuda/items_by_target.h"

namespace polyop {

/// Sets to[b, c, idx[b, j, k]] to the sum of weight[b, j, k] * grad[b, c, j] over all j < picks and k < each; 0 where
/// there is none. All weights are 1 if `weight` is null; a weight of 0 adds nothing. `grad` is
/// [batches, channels, picks], `to` is [batches, channels, columns]. An index out of range is skipped. Each thread sums
/// one column of one channel.
template <class T, class I>
Status ScatterColumnsCuda(const CudaContext& cuda, const T* grad, const I* idx, const T* weight, int64_t batches,
                          int64_t channels, int64_t picks, int64_t each, int64_t columns, T* to) {
  if (batches * channels * columns == 0) return cuda.Check();
  const Divider by_batch(picks * each), by_each(each), by_columns(columns), by_channels(channels);
  ItemsByTargetCuda groups;
  POLYOP_RETURN_IF_ERROR(ItemsByTargetCuda::Group(
      cuda, batches * picks * each, batches * columns,
      [=] POLYOP_DEVICE(int64_t i) {
        const int64_t column = idx[i];
        return column >= 0 && column < columns ? by_batch.Quotient(i) * columns + column : int64_t{-1};
      },
      &groups));
  return ForEach(cuda, batches * channels * columns, [=] POLYOP_DEVICE(int64_t i) {
    int64_t column;
    const int64_t row = by_columns.Split(i, &column), b = by_channels.Quotient(row), target = b * columns + column;
    float sum = 0;
    for (int64_t k = groups.begins[target]; k < groups.begins[target + 1]; ++k) {
      const int64_t item = groups.items[k], pick = by_each.Quotient(item) - b * picks;
      const float w = weight == nullptr ? 1.0f : ToFloat(weight[item]);
      if (w != 0) sum += w * ToFloat(grad[row * picks + pick]);
    }
    to[i] = FromFloat<T>(sum);
  });
}

}  // namespace polyop
