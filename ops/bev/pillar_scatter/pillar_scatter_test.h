// SPDX-License-Identifier: Apache-2.0
// Attributes and positions that the tests of PillarScatter and of its gradient share.
#pragma once

#include "ops/bev/pillar_scatter/pillar_scatter.h"
#include "testing/testing.h"

namespace polyop::testing {

/// Returns PillarScatter, or its gradient, for canvases of this size.
template <class P>
P Canvas(int64_t height, int64_t width, int64_t images = 1) {
  P op;
  op.dense_shape = {height, width};
  op.batch_size = images;
  return op;
}

/// Returns random positions (image, z = 0, y, x) on the canvases.
inline HostTensor Positions(const PillarScatter& op, const Shape& shape, DType index, std::mt19937& rng) {
  HostTensor coords(index, shape);
  const int64_t limits[4] = {op.batch_size, 1, op.dense_shape[0], op.dense_shape[1]};
  for (int64_t i = 0; i < coords.size(); ++i) {
    coords.set(i, static_cast<double>(rng() % static_cast<uint64_t>(limits[i % 4])));
  }
  return coords;
}

}  // namespace polyop::testing
