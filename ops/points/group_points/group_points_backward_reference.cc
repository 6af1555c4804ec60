// SPDX-License-Identifier: Apache-2.0
#include "ops/points/gather_columns_reference.h"
#include "ops/points/group_points/group_points_backward.h"

namespace polyop {
namespace {

template <class I>
Status GroupPointsBackwardReference(const GroupPointsBackward&, const Context& context,
                                    Tensor<const double, 4> grad_output, Tensor<const double, 3> features,
                                    Tensor<const I, 3> idx, Tensor<double, 3> grad_features) {
  return reference::GatherColumnsBackward(context, grad_output, features, idx.data(), idx.dim(1) * idx.dim(2),
                                          grad_features.data());
}
POLYOP_REFERENCE_KERNELS(GroupPointsBackward, GroupPointsBackwardReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
