// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/deform/dcn_v3/dcn_v3_backward.h"
#include "ops/deform/dcn_window_reference.h"

namespace polyop {
namespace {

Status DcnV3BackwardReference(const DcnV3Backward& op, const Context&, Tensor<const double, 4> grad_output,
                              Tensor<const double, 4> input, Tensor<const double, 4> offset,
                              Tensor<const double, 4> mask, std::optional<Tensor<double, 4>> grad_input,
                              std::optional<Tensor<double, 4>> grad_offset,
                              std::optional<Tensor<double, 4>> grad_mask) {
  for (const auto& grad : {grad_input, grad_offset, grad_mask}) {
    if (grad) std::fill_n(grad->data(), grad->size(), 0.0);
  }
  const auto sample = [&](int64_t pixel, int64_t g, int64_t p) { return (pixel * op.group + g) * op.points() + p; };
  return reference::SumDcnWindowsBackward(
      op, grad_output, input,
      [&](int64_t pixel, int64_t g, int64_t p) { return offset.data() + 2 * sample(pixel, g, p); },
      [&](int64_t pixel, int64_t g, int64_t p) { return mask.data() + sample(pixel, g, p); },
      grad_input ? grad_input->data() : nullptr,
      [&](int64_t pixel, int64_t g, int64_t p) {
        return grad_offset ? grad_offset->data() + 2 * sample(pixel, g, p) : nullptr;
      },
      [&](int64_t pixel, int64_t g, int64_t p) {
        return grad_mask ? grad_mask->data() + sample(pixel, g, p) : nullptr;
      });
}
POLYOP_REFERENCE_KERNEL(DcnV3Backward, DcnV3BackwardReference);

}  // namespace
}  // namespace polyop
