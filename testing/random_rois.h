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

/// Turned rois (batch index, centre x, y, width, height, angle) [count, 6] of pictures in turn, whose sides are -1 to
/// `extent` long and whose angles go beyond a full turn. Right angles, which put samples exactly on edges, where
/// rounding decides, are not among them.
inline HostTensor RandomTurnedRois(DType dtype, int64_t count, int64_t pictures, double extent, std::mt19937& rng) {
  std::uniform_real_distribution<double> centre(-0.4 * extent, 1.4 * extent), size(-1, extent), angle(-9, 9);
  HostTensor rois(dtype, {count, 6});
  for (int64_t r = 0; r < count; ++r) {
    const double values[6] = {
        static_cast<double>(r % pictures), centre(rng), centre(rng), size(rng), size(rng), angle(rng)};
    for (int k = 0; k < 6; ++k) rois.set(6 * r + k, values[k]);
  }
  return rois;
}

}  // namespace polyop::testing
