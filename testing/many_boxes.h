// SPDX-License-Identifier: Apache-2.0
// Random boxes in distributions that suppression handles differently: few overlaps, many overlaps, or positions that
// are hard to sort.
#pragma once

#include <cmath>
#include <limits>
#include <random>

#include "testing/testing.h"

namespace polyop::testing {

enum class Spread { kUniform, kClustered, kGiants, kEqual, kLine, kByClass, kHuge, kOverflow, kNonFinite };

inline constexpr Spread kSpreads[] = {Spread::kUniform, Spread::kClustered, Spread::kGiants,
                                      Spread::kEqual,   Spread::kLine,      Spread::kByClass,
                                      Spread::kHuge,    Spread::kOverflow,  Spread::kNonFinite};

inline const char* NameOf(Spread spread) {
  switch (spread) {
    case Spread::kUniform: return "uniform";
    case Spread::kClustered: return "clustered";
    case Spread::kGiants: return "giants";
    case Spread::kEqual: return "equal";
    case Spread::kLine: return "line";
    case Spread::kByClass: return "by class";
    case Spread::kHuge: return "huge";
    case Spread::kOverflow: return "overflowing areas";
    case Spread::kNonFinite: return "non-finite";
  }
  return "";
}

/// Returns boxes (x1, y1, x2, y2) [count, 4]. Corners are multiples of 1/4, so that IoUs are often round numbers. The
/// area of a uniform spread grows with the count. Some boxes are empty; in kNonFinite some are reversed, infinite or
/// NaN. In kOverflow, areas of single boxes, or the sum of two areas, are greater than the largest float.
inline HostTensor ManyBoxes(Spread spread, int64_t count, std::mt19937& rng) {
  const auto uniform = [&](double low, double high) {
    return std::round(std::uniform_real_distribution<double>(low, high)(rng) * 4) / 4;
  };
  const double side = 12 * std::sqrt(static_cast<double>(count));
  HostTensor boxes(DType::kF32, {count, 4});
  for (int64_t i = 0; i < count; ++i) {
    double x = uniform(0, side), y = uniform(0, side), width = uniform(2, 20), height = uniform(2, 20);
    switch (spread) {
      case Spread::kUniform:
        if (rng() % 50 == 0) width = 0;
        break;
      case Spread::kClustered:
        x = static_cast<double>(rng() % 12) * 500 + uniform(0, 9);
        y = static_cast<double>(rng() % 12) * 500 + uniform(0, 9);
        break;
      case Spread::kGiants:
        if (rng() % 100 == 0) width = height = side;
        if (rng() % 4 == 0) width = height = 0.25;
        break;
      case Spread::kEqual: width = height = 8; break;
      case Spread::kLine:
        y = 5;
        height = 3;
        break;
      case Spread::kByClass: {
        const double shift = static_cast<double>(rng() % 40) * (side + 20);
        x = x / 8 + shift;
        y = y / 8 + shift;
        break;
      }
      case Spread::kHuge:
        if (rng() % 8 == 0) x *= 1e30 / side;
        if (rng() % 8 == 0) width = 1e30;
        if (rng() % 8 == 0) height = 1e-30;
        break;
      case Spread::kOverflow:
        x *= 0x1p56;
        y *= 0x1p56;
        width = std::ldexp(uniform(1, 2), 63);
        height = std::ldexp(uniform(1, 2), 60 + static_cast<int>(rng() % 5));
        break;
      case Spread::kNonFinite:
        if (rng() % 8 == 0) width = -width / 16;  // valid with an offset of 1
        break;
    }
    const double corners[4] = {x, y, x + width, y + height};
    for (int k = 0; k < 4; ++k) boxes.set(4 * i + k, corners[k]);
    if (spread == Spread::kNonFinite && rng() % 8 == 0) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      boxes.set(4 * i + static_cast<int64_t>(rng() % 4), rng() % 3 == 0   ? NAN
                                                         : rng() % 2 == 0 ? kInfinity
                                                                          : -kInfinity);
    }
    if ((spread == Spread::kEqual || spread == Spread::kOverflow) && i % 3 == 1) {
      for (int k = 0; k < 4; ++k) boxes.set(4 * i + k, boxes.at(4 * (i - 1) + k));
    }
  }
  return boxes;
}

/// Like ManyBoxes, as (center x, center y, width, height, angle) [count, 5].
inline HostTensor ManyRotatedBoxes(Spread spread, int64_t count, std::mt19937& rng) {
  const HostTensor corners = ManyBoxes(spread, count, rng),
                   angles = HostTensor::Uniform(DType::kF32, {count}, rng, -4, 4);
  HostTensor boxes(DType::kF32, {count, 5});
  for (int64_t i = 0; i < count; ++i) {
    for (int k = 0; k < 2; ++k) {
      const double low = corners.at(4 * i + k), high = corners.at(4 * i + 2 + k);
      boxes.set(5 * i + k, (low + high) / 2);
      boxes.set(5 * i + 2 + k, high - low);
    }
    boxes.set(5 * i + 4, angles.at(i));
  }
  return boxes;
}

/// Returns scores in [0, 1). Half of the calls return many ties and some NaN.
inline HostTensor ManyScores(const Shape& shape, std::mt19937& rng) {
  HostTensor scores = HostTensor::Uniform(DType::kF32, shape, rng, 0, 1);
  const bool ties = rng() % 2 == 0;
  for (int64_t i = 0; ties && i < scores.size(); ++i) scores.set(i, rng() % 500 == 0 ? NAN : rng() % 300 / 300.0);
  return scores;
}

}  // namespace polyop::testing
