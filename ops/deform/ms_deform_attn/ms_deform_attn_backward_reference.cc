// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_attn_reference.h"
#include "ops/deform/ms_deform_attn/ms_deform_attn_backward.h"

namespace polyop {
namespace {

Status MsDeformAttnBackwardReference(const MsDeformAttnBackward&, const Context&, Tensor<const double, 3> grad_output,
                                     Tensor<const double, 4> value, Tensor<const int64_t, 2> shapes,
                                     Tensor<const int64_t, 1> starts, Tensor<const double, 6> locations,
                                     Tensor<const double, 5> weights, std::optional<Tensor<double, 4>> grad_value,
                                     std::optional<Tensor<double, 6>> grad_locations,
                                     std::optional<Tensor<double, 5>> grad_weights) {
  return reference::DeformAttnAtLocationsBackward(
      grad_output.data(), value, shapes, starts, locations, weights, grad_value ? grad_value->data() : nullptr,
      grad_locations ? grad_locations->data() : nullptr, grad_weights ? grad_weights->data() : nullptr);
}
POLYOP_REFERENCE_KERNEL(MsDeformAttnBackward, MsDeformAttnBackwardReference);

}  // namespace
}  // namespace polyop
