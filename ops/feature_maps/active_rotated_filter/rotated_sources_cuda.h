// SPDX-License-Identifier: Apache-2.0
// The copies of ActiveRotatedFilter, on the GPU.
#pragma once

#include "core/tensor.h"
#include "kernels/cuda/last_items.h"

namespace polyop {

/// The entry that is copied to each position of each rotation: the last one if there are several.
struct RotatedSources {
  const int64_t* copies;  // the copy of each position, or -1; copy c is of entry c / rotations
  int64_t entries;
  Divider by_rotations;

  /// Finds the sources. An index that is out of range is skipped.
  template <class I>
  static Status Find(const CudaContext& cuda, const Tensor<const I, 4>& indices, int64_t entries,
                     RotatedSources* sources) {
    const I* const targets = indices.data();
    const Divider by_rotations(indices.dim(3));
    *sources = {nullptr, entries, by_rotations};
    const int64_t count = indices.dim(3) * entries;
    return FindLastItems(
        cuda, count, count,
        [=] POLYOP_DEVICE(int64_t copy) {
          int64_t rotation;
          by_rotations.Split(copy, &rotation);
          const int64_t position = int64_t{targets[copy]} - 1;
          return position >= 0 && position < entries ? rotation * entries + position : -1;
        },
        &sources->copies);
  }
  /// Returns the entry, or -1 if there is none.
  POLYOP_HD int64_t Of(int64_t rotation, int64_t position) const {
    const int64_t copy = copies[rotation * entries + position];
    return copy >= 0 ? by_rotations.Quotient(copy) : -1;
  }
  /// Returns whether the entry is Of(rotation, position). Requires: a rotation copies the entry to this position.
  POLYOP_HD bool Is(int64_t entry, int64_t rotation, int64_t position) const {
    return copies[rotation * entries + position] == entry * by_rotations.divisor() + rotation;
  }
};

}  // namespace polyop
