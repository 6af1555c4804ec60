// SPDX-License-Identifier: Apache-2.0
// Random regions of interest.
#pragma once

#include <cmath>
#include <random>

#include "testing/testing.h"

namespace polyop::testing {

/// Returns rois (batch index, x1, y1, x2, y2) [count, 5] with batch indices 0, 1, …, `images` - 1, 0, … and corners in
/// [-4, 20): some are reversed, and some extend beyond a small image.
inline HostTensor RandomRois(DType dtype, int64_t count, int64_t images, std::mt19937& rng) {
  HostTensor rois = HostTensor::Uniform(dtype, {count, 5}, rng, -4, 20);
  for (int64_t r = 0; r < count; ++r) rois.set(5 * r, static_cast<double>(r % images));
  return rois;
}

/// Returns rois [count, 5] with the same batch indices and first corners in [-4, 16). Three of four are at least
/// `min_side` wide and high; the fourth has its second corner in [-4, 16), too.
inline HostTensor RandomRoisWithSides(DType dtype, int64_t count, int64_t images, double min_side, std::mt19937& rng) {
  HostTensor rois = HostTensor::Uniform(dtype, {count, 5}, rng, -4, 16);
  for (int64_t r = 0; r < count; ++r) {
    rois.set(5 * r, static_cast<double>(r % images));
    if (r % 4 == 3) continue;
    for (int64_t k = 5 * r + 3; k < 5 * r + 5; ++k) rois.set(k, rois.at(k - 2) + min_side + std::fabs(rois.at(k)));
  }
  return rois;
}

/// Returns regions between two Bezier curves (batch index, x and y of eight control points) [count, 17] with batch
/// indices 0, 1, …, `images` - 1, 0, … and control points in [-4, 20).
inline HostTensor RandomBezierRois(DType dtype, int64_t count, int64_t images, std::mt19937& rng) {
  HostTensor rois = HostTensor::Uniform(dtype, {count, 17}, rng, -4, 20);
  for (int64_t r = 0; r < count; ++r) rois.set(17 * r, static_cast<double>(r % images));
  return rois;
}

/// Returns rotated rois (batch index, center x, y, width, height, angle) [count, 6] with batch indices 0, 1, …,
/// `images` - 1, 0, …, side lengths in [-1, extent) and angles in [-9, 9). There are no right angles, which put
/// samples exactly on edges, where the result depends on rounding.
inline HostTensor RandomRotatedRois(DType dtype, int64_t count, int64_t images, double extent, std::mt19937& rng) {
  std::uniform_real_distribution<double> centre(-0.4 * extent, 1.4 * extent), size(-1, extent), angle(-9, 9);
  HostTensor rois(dtype, {count, 6});
  for (int64_t r = 0; r < count; ++r) {
    const double values[6] = {
        static_cast<double>(r % images), centre(rng), centre(rng), size(rng), size(rng), angle(rng)};
    for (int k = 0; k < 6; ++k) rois.set(6 * r + k, values[k]);
  }
  return rois;
}

}  // namespace polyop::testing
