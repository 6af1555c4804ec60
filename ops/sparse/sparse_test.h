// SPDX-License-Identifier: Apache-2.0
// Voxels and filters for the tests of sparse convolutions.
#pragma once

#include <algorithm>
#include <array>

#include "ops/sparse/sparse_rule.h"
#include "testing/testing.h"

namespace polyop::testing {

/// Returns attributes of a filter along x, for one grid of `extent` cells.
template <class Op>
Op LineOf(int64_t extent, int64_t ksize, int64_t stride, int64_t padding) {
  Op op;
  op.spatial_shape = {1, 1, extent};
  op.ksize = {1, 1, ksize};
  op.stride = {1, 1, stride};
  op.padding = {0, 0, padding};
  return op;
}

/// Returns the indices of voxels of such a grid.
inline HostTensor Line(const std::vector<double>& xs) {
  HostTensor indices = HostTensor::Full(DType::kI32, {static_cast<int64_t>(xs.size()), 4}, 0);
  for (size_t n = 0; n < xs.size(); ++n) indices.set(static_cast<int64_t>(4 * n + 3), xs[n]);
  return indices;
}

/// Returns `count` voxels below `limits`, some of them in the same cell.
inline HostTensor VoxelsIn(const std::array<int64_t, 4>& limits, int64_t count, DType type, std::mt19937& rng) {
  HostTensor indices(type, {count, 4});
  for (int64_t i = 0; i < indices.size(); ++i) {
    indices.set(i, static_cast<double>(rng() % static_cast<uint64_t>(limits[static_cast<size_t>(i % 4)])));
  }
  return indices;
}

inline HostTensor VoxelsOf(const SparseConvRule& op, int64_t count, DType type, std::mt19937& rng) {
  const auto& shape = op.spatial_shape;
  return VoxelsIn({op.batch_size, shape[0], shape[1], shape[2]}, count, type, rng);
}

/// Returns random, valid attributes.
template <class Op>
Op RandomRule(std::mt19937& rng) {
  for (;;) {
    Op op;
    op.batch_size = 1 + rng() % 3;
    op.subm = rng() % 3 == 0;
    op.transpose = rng() % 3 == 0;
    for (size_t a = 0; a < 3; ++a) {
      op.spatial_shape[a] = 1 + rng() % 9;
      op.ksize[a] = 1 + rng() % 4;
      op.stride[a] = 1 + rng() % 3;
      op.padding[a] = rng() % 3;
      op.dilation[a] = 1 + rng() % 3;
      op.out_padding[a] = rng() % 2;
    }
    if (op.Check().ok()) return op;
  }
}

}  // namespace polyop::testing
