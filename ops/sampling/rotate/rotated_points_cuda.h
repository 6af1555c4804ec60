// SPDX-License-Identifier: Apache-2.0
// The source positions of the pixels of a rotated image, for CUDA kernels.
#pragma once

#include "kernels/cuda/cuda.h"
#include "ops/sampling/rotate/rotate.h"
#include "ops/sampling/rotate/rotation.h"

namespace polyop {

struct RotatedPoints {
  static constexpr bool kInPixels = true;
  const Rotation* rotation;
  int64_t width;

  POLYOP_HD void At(int64_t, int64_t point, float at[2]) const { rotation->SourceOf(point / width, point % width, at); }
};

/// Computes sine and cosine once, in a separate launch.
template <class U>
Status FindRotation(const Rotate& op, const CudaContext& cuda, const U* angle, const U* center,
                    const Rotation** rotation) {
  Rotation* const to = cuda.Allocate<Rotation>(1);
  const bool nearest = op.interpolation == Rotate::Interpolation::kNearest;
  *rotation = to;
  return ForEach(cuda, 1, [=] POLYOP_DEVICE(int64_t) {
    *to = Rotation::Make(ToFloat(*angle), ToFloat(center[0]), ToFloat(center[1]), nearest);
  });
}

}  // namespace polyop
