// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_attn_reference.h"
#include "ops/deform/ms_deform_attn/ms_deform_attn.h"

namespace polyop {
namespace {

Status MsDeformAttnReference(const MsDeformAttn&, const Context&, Tensor<const double, 4> value,
                             Tensor<const int64_t, 2> shapes, Tensor<const int64_t, 1> starts,
                             Tensor<const double, 6> locations, Tensor<const double, 5> weights,
                             Tensor<double, 3> output) {
  return reference::DeformAttnAtLocations(value, shapes, starts, locations, weights, output.data());
}
POLYOP_REFERENCE_KERNEL(MsDeformAttn, MsDeformAttnReference);

}  // namespace
}  // namespace polyop
