// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/check_indices.h"
#include "ops/points/gather_points/gather_points.h"

namespace polyop {
namespace {

template <class I>
Status GatherPointsReference(const GatherPoints&, const Context& context, Tensor<const double, 3> features,
                             Tensor<const I, 2> idx, Tensor<double, 3> gathered) {
  const int64_t channels = features.dim(1), points = features.dim(2), chosen = idx.dim(1);
  POLYOP_RETURN_IF_ERROR(CheckIndices(context, "idx", idx.data(), idx.size(), points, "a column of 'features'"));
  for (int64_t b = 0; b < idx.dim(0); ++b) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t m = 0; m < chosen; ++m) {
        gathered[(b * channels + c) * chosen + m] = features[(b * channels + c) * points + idx[b * chosen + m]];
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(GatherPoints, GatherPointsReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
