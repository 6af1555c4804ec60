// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_attn_reference.h"
#include "ops/deform/ms_deform_attn_by_head/ms_deform_attn_by_head.h"

namespace polyop {
namespace {

Status MsDeformAttnByHeadReference(const MsDeformAttnByHead&, const Context&, Tensor<const double, 4> value,
                                   Tensor<const int64_t, 2> shapes, Tensor<const int64_t, 1> starts,
                                   Tensor<const double, 6> locations, Tensor<const double, 5> weights,
                                   Tensor<double, 4> output) {
  return reference::DeformAttnAtLocations(value, shapes, starts, locations, weights, output.data());
}
POLYOP_REFERENCE_KERNEL(MsDeformAttnByHead, MsDeformAttnByHeadReference);

}  // namespace
}  // namespace polyop
