// SPDX-License-Identifier: Apache-2.0
// The distance of pixels from the mean embedding of a kernel, for CPU and GPU.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/host_device.h"

namespace polyop {

/// Decides whether a label may spread to a pixel of the mask.
template <class T, class M>
struct NearToMean {
  const M* mask;
  const T* embedding;
  const double* means;  // [kernel_region_num, dimensions]
  int64_t dimensions;
  double threshold;

  POLYOP_HD bool operator()(int64_t pixel, int32_t label) const {
    if (mask[pixel] == 0) return false;
    double squared = 0;
    for (int64_t d = 0; d < dimensions; ++d) {
      const double difference =
          static_cast<double>(ToFloat(embedding[pixel * dimensions + d])) - means[label * dimensions + d];
      squared += difference * difference;
    }
    return squared < threshold * threshold;
  }
};

}  // namespace polyop
