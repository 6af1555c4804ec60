// What operators on regions of interest check alike.
#pragma once

#include <cmath>

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// Component 0 of every roi is a picture's index: a whole number in [0, pictures).
template <class T>
Status CheckBatchIndices(Tensor<const T, 2> rois, int64_t pictures) {
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const float index = ToFloat(rois[r * rois.dim(1)]);
    if (index >= 0 && index < static_cast<float>(pictures) && index == std::floor(index)) continue;
    return InvalidArgument("'rois'[", r, ", 0] is ", index, ", wanted a batch index: a whole number in [0, ", pictures,
                           ")");
  }
  return Status::Ok();
}

/// The same for indices that are an input of their own.
template <class I>
Status CheckBatchIndices(Tensor<const I, 1> indices, int64_t pictures) {
  for (int64_t r = 0; r < indices.dim(0); ++r) {
    if (indices[r] >= 0 && indices[r] < pictures) continue;
    return InvalidArgument("'batch_indices'[", r, "] is ", int64_t{indices[r]}, ", wanted a number in [0, ", pictures,
                           ")");
  }
  return Status::Ok();
}

}  // namespace polyop
