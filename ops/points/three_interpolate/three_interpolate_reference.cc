// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/check_indices.h"
#include "ops/points/three_interpolate/three_interpolate.h"

namespace polyop {
namespace {

template <class I>
Status ThreeInterpolateReference(const ThreeInterpolate&, const Context& context, Tensor<const double, 3> features,
                                 Tensor<const I, 3> idx, Tensor<const double, 3> weight,
                                 Tensor<double, 3> interpolated) {
  const int64_t channels = features.dim(1), sources = features.dim(2), targets = idx.dim(1);
  POLYOP_RETURN_IF_ERROR(CheckIndices(context, "idx", idx.data(), idx.size(), sources, "a column of 'features'"));
  for (int64_t b = 0; b < features.dim(0); ++b) {
    for (int64_t n = 0; n < targets; ++n) {
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int64_t k = 0; k < 3; ++k) {
          const int64_t at = (b * targets + n) * 3 + k;
          sum += weight[at] * features[(b * channels + c) * sources + idx[at]];
        }
        interpolated[(b * channels + c) * targets + n] = sum;
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(ThreeInterpolate, ThreeInterpolateReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
