// SPDX-License-Identifier: Apache-2.0
// The positions at which a rotated image samples its source, on the CPU.
#pragma once

#include <array>

#include "core/context.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "ops/sampling/rotate/rotate.h"
#include "ops/sampling/rotate/rotation.h"

namespace polyop {

template <class U>
Rotation RotationOf(const Rotate& op, const Tensor<const U, 0>& angle, const Tensor<const U, 1>& center) {
  return Rotation::Make(ToFloat(angle[0]), ToFloat(center[0]), ToFloat(center[1]),
                        op.interpolation == Rotate::Interpolation::kNearest);
}

/// Sets points[i] to the source position (x, y) of pixel i.
inline void FindSources(const Context& context, const Rotation& rotation, int64_t height, int64_t width,
                        float* points) {
  context.ParallelFor(height, GrainFor(static_cast<double>(width) * 4), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * width; i < end * width; ++i) rotation.SourceOf(i / width, i % width, points + 2 * i);
  });
}

/// Returns the axes x and y of the source positions.
inline std::array<GridAxis, 2> SourceAxes(const Rotate& op, int64_t height, int64_t width) {
  const GridRule::Padding padding = op.Rule().padding_mode;
  return {GridAxis{padding, false, width, true}, GridAxis{padding, false, height, true}};
}

}  // namespace polyop
