// SPDX-License-Identifier: Apache-2.0
// The batch indices of regions of interest, and their checks.
#pragma once

#include <cmath>

#include "core/dtype.h"
#include "core/host_device.h"
#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// Returns the batch index that the first component of a RoI states, or -1 if it is not an integer from 0 on. Numbers
/// of images are compared with this integer: they are not exact as floats.
POLYOP_HD inline int64_t ImageOf(float component) {
  const bool is_index = component >= 0 && component < 0x1p63f && component == std::floor(component);
  return is_index ? static_cast<int64_t>(component) : -1;
}

/// Checks that component 0 of every RoI is a batch index: an integer in [0, images).
template <class T>
Status CheckBatchIndices(Tensor<const T, 2> rois, int64_t images) {
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const float index = ToFloat(rois[r * rois.dim(1)]);
    if (ImageOf(index) >= 0 && ImageOf(index) < images) continue;
    return InvalidArgument("'rois'[", r, ", 0]: expected a batch index in [0, ", images, "), got ", index);
  }
  return Status::Ok();
}

/// Checks batch indices that are a separate input.
template <class I>
Status CheckBatchIndices(Tensor<const I, 1> indices, int64_t images) {
  for (int64_t r = 0; r < indices.dim(0); ++r) {
    if (indices[r] >= 0 && indices[r] < images) continue;
    return InvalidArgument("'batch_indices'[", r, "]: expected a batch index in [0, ", images, "), got ",
                           int64_t{indices[r]});
  }
  return Status::Ok();
}

}  // namespace polyop
