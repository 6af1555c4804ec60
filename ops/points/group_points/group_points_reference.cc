// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/check_indices.h"
#include "ops/points/group_points/group_points.h"

namespace polyop {
namespace {

template <class I>
Status GroupPointsReference(const GroupPoints&, const Context& context, Tensor<const double, 3> features,
                            Tensor<const I, 3> idx, Tensor<double, 4> grouped) {
  const int64_t channels = features.dim(1), points = features.dim(2), groups = idx.dim(1), size = idx.dim(2);
  POLYOP_RETURN_IF_ERROR(CheckIndices(context, "idx", idx.data(), idx.size(), points, "a column of 'features'"));
  for (int64_t b = 0; b < idx.dim(0); ++b) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t g = 0; g < groups; ++g) {
        for (int64_t k = 0; k < size; ++k) {
          const int64_t point = idx[(b * groups + g) * size + k];
          grouped[((b * channels + c) * groups + g) * size + k] = features[(b * channels + c) * points + point];
        }
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(GroupPoints, GroupPointsReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
