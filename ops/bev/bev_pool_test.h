// SPDX-License-Identifier: Apache-2.0
// Inputs for the tests of BEV pooling.
#pragma once

#include <algorithm>
#include <vector>

#include "testing/testing.h"

namespace polyop::testing {

struct BevScene {
  int64_t images = 2, depths = 5, height = 3, width = 4, channels = 8;
  int64_t ranks = 60, intervals = 12;
};

/// Returns inputs with consecutive intervals. Some are empty, some belong to the same cell.
inline std::vector<HostTensor> BevInputs(const BevScene& s, DType type, DType index, int64_t cells, std::mt19937& rng) {
  const auto draw = [&](int64_t limit) {
    HostTensor ranks(index, {s.ranks});
    for (int64_t i = 0; i < s.ranks; ++i) ranks.set(i, static_cast<double>(rng() % static_cast<uint64_t>(limit)));
    return ranks;
  };
  HostTensor starts(index, {s.intervals}), lengths(index, {s.intervals});
  int64_t at = 0;
  for (int64_t j = 0; j < s.intervals; ++j) {
    const int64_t length = std::min<int64_t>(s.ranks - at, static_cast<int64_t>(rng() % 11));
    starts.set(j, static_cast<double>(at));
    lengths.set(j, static_cast<double>(length));
    at += length;
  }
  return {HostTensor::Uniform(type, {s.images, s.depths, s.height, s.width}, rng, 0, 1),
          HostTensor::Uniform(type, {s.images, s.height, s.width, s.channels}, rng),
          draw(s.images * s.depths * s.height * s.width),
          draw(s.images * s.height * s.width),
          draw(cells),
          starts,
          lengths};
}

inline HostTensor I32(const std::vector<double>& values) {
  return HostTensor::Of(DType::kI32, {static_cast<int64_t>(values.size())}, values);
}

/// Returns inputs with one image of 1 x 2 pixels, two depths and one channel.
inline std::vector<HostTensor> SmallBev(const std::vector<double>& ranks_bev, const std::vector<double>& starts,
                                        const std::vector<double>& lengths) {
  return {HostTensor::Of(DType::kF32, {1, 2, 1, 2}, {1, 2, 3, 4}),
          HostTensor::Of(DType::kF32, {1, 1, 2, 1}, {10, 100}),
          I32({0, 1, 2, 3}),
          I32({0, 1, 0, 1}),
          I32(ranks_bev),
          I32(starts),
          I32(lengths)};
}

}  // namespace polyop::testing
