// SPDX-License-Identifier: Apache-2.0
// Groups items by the target that they contribute to, so that a GPU thread sums a target's items in their order,
// without atomic additions. The GPU version of kernels/cpu/items_by_target.h.
#pragma once

#include <bit>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device_sort.h"

namespace polyop {

/// The items of target t are items[begins[t]] to items[begins[t + 1] - 1], in ascending order.
struct ItemsByTargetCuda {
  const int32_t* items = nullptr;
  const int64_t* begins = nullptr;  // [targets + 1]

  /// Groups items [0, count). target(i) returns the target of item i; an item whose target is not in [0, targets)
  /// belongs to none.
  template <class Target>
  static Status Group(const CudaContext& cuda, int64_t count, int64_t targets, const Target& target,
                      ItemsByTargetCuda* groups) {
    SortPairs sort = SortPairs::Allocate(cuda, count);
    int64_t* const begins = cuda.Allocate<int64_t>(targets + 1);
    {
      uint64_t* const keys = sort.keys;
      int32_t* const values = sort.values;
      POLYOP_RETURN_IF_ERROR(ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) {
        const int64_t t = target(i);
        keys[i] = static_cast<uint64_t>(t >= 0 && t < targets ? t : targets);
        values[i] = static_cast<int32_t>(i);
      }));
    }
    POLYOP_RETURN_IF_ERROR(sort.Sort(cuda, std::bit_width(static_cast<uint64_t>(targets))));
    const uint64_t* const keys = sort.keys;
    *groups = {sort.values, begins};
    return ForEach(cuda, targets + 1, [=] POLYOP_DEVICE(int64_t t) {
      int64_t low = 0, high = count;  // the first key that is not less than t is at one of [low, high]
      while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const bool less = keys[middle] < static_cast<uint64_t>(t);
        low = less ? middle + 1 : low;
        high = less ? high : middle;
      }
      begins[t] = low;
    });
  }
};

}  // namespace polyop
