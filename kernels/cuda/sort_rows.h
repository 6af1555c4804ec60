// SPDX-License-Identifier: Apache-2.0
// Sorts rows of elements on the GPU, with their indices.
#pragma once

#include <bit>

#include "core/order_keys.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device_sort.h"

namespace polyop {

/// Sorts each row of `length` of the `count` elements stably, in the order of OrderKeyOf or in the reverse one. The
/// values become the indices of the elements in all rows. The keys of a single row are equal for equal elements.
template <class T>
Status SortRows(const CudaContext& cuda, const T* x, int64_t count, int64_t length, bool descending,
                SortPairs* sorted) {
  using Key = OrderKey<T>;
  constexpr int kBits = 8 * static_cast<int>(sizeof(Key));
  // All rows are sorted together: by their elements, and by the row, which is in the key's high bits if it fits there.
  constexpr bool kRowFits = kBits == 32;
  const int64_t rows = length == 0 ? 0 : count / length;
  const int row_bits = rows > 1 ? std::bit_width(static_cast<uint64_t>(rows - 1)) : 0;
  const Key flipped_bits = descending ? ~Key{0} : 0;
  *sorted = SortPairs::Allocate(cuda, count);
  uint64_t* const keys = sorted->keys;
  int32_t* const values = sorted->values;
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) {
    const auto row = static_cast<uint64_t>(kRowFits ? i / length : 0);
    keys[i] = row << (kBits % 64) | (OrderKeyOf(x[i]) ^ flipped_bits);
    values[i] = static_cast<int32_t>(i);
  }));
  POLYOP_RETURN_IF_ERROR(sorted->Sort(cuda, kRowFits ? kBits + row_bits : kBits));
  if (kRowFits || rows <= 1) return Status::Ok();
  uint64_t* const row_keys = sorted->keys;
  const int32_t* const by_element = sorted->values;
  POLYOP_RETURN_IF_ERROR(ForEach(
      cuda, count, [=] POLYOP_DEVICE(int64_t i) { row_keys[i] = static_cast<uint64_t>(by_element[i] / length); }));
  return sorted->Sort(cuda, row_bits);
}

}  // namespace polyop
