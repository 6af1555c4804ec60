// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/dcn_v4/dcn_v4.h"
#include "ops/deform/dcn_window_reference.h"

namespace polyop {
namespace {

Status DcnV4Reference(const DcnV4& op, const Context&, Tensor<const double, 4> input,
                      Tensor<const double, 4> offset_mask, Tensor<double, 4> output) {
  const auto group = [&](int64_t pixel, int64_t g) {
    return offset_mask.data() + pixel * offset_mask.dim(3) + g * 3 * op.points();
  };
  return reference::SumDcnWindows(
      op, input, [&](int64_t pixel, int64_t g, int64_t p) { return group(pixel, g) + 2 * p; },
      [&](int64_t pixel, int64_t g, int64_t p) { return group(pixel, g) + 2 * op.points() + p; }, output);
}
POLYOP_REFERENCE_KERNEL(DcnV4, DcnV4Reference);

}  // namespace
}  // namespace polyop
