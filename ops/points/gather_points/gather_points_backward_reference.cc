// SPDX-License-Identifier: Apache-2.0
#include "ops/points/gather_columns_reference.h"
#include "ops/points/gather_points/gather_points_backward.h"

namespace polyop {
namespace {

template <class I>
Status GatherPointsBackwardReference(const GatherPointsBackward&, const Context& context,
                                     Tensor<const double, 3> grad_output, Tensor<const double, 3> features,
                                     Tensor<const I, 2> idx, Tensor<double, 3> grad_features) {
  return reference::GatherColumnsBackward(context, grad_output, features, idx.data(), idx.dim(1), grad_features.data());
}
POLYOP_REFERENCE_KERNELS(GatherPointsBackward, GatherPointsBackwardReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
