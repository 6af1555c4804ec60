// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/dcn_v3/dcn_v3.h"
#include "ops/deform/dcn_window_reference.h"

namespace polyop {
namespace {

Status DcnV3Reference(const DcnV3& op, const Context&, Tensor<const double, 4> input, Tensor<const double, 4> offset,
                      Tensor<const double, 4> mask, Tensor<double, 4> output) {
  const auto sample = [&](int64_t pixel, int64_t g, int64_t p) { return (pixel * op.group + g) * op.points() + p; };
  return reference::SumDcnWindows(
      op, input, [&](int64_t pixel, int64_t g, int64_t p) { return offset.data() + 2 * sample(pixel, g, p); },
      [&](int64_t pixel, int64_t g, int64_t p) { return mask.data() + sample(pixel, g, p); }, output);
}
POLYOP_REFERENCE_KERNEL(DcnV3, DcnV3Reference);

}  // namespace
}  // namespace polyop
