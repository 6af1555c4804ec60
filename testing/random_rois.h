// Boxes to pool from pictures.
#pragma once

#include <random>

#include "testing/testing.h"

namespace polyop::testing {

/// Rois (batch index, x1, y1, x2, y2) [count, 5] of pictures in turn, whose corners lie anywhere between -4 and 20:
/// some are reversed, and some reach out of a small picture.
inline HostTensor RandomRois(DType dtype, int64_t count, int64_t pictures, std::mt19937& rng) {
  HostTensor rois = HostTensor::Uniform(dtype, {count, 5}, rng, -4, 20);
  for (int64_t r = 0; r < count; ++r) rois.set(5 * r, static_cast<double>(r % pictures));
  return rois;
}

}  // namespace polyop::testing
