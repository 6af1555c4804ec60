// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/deform/dcn_v4/dcn_v4_backward.h"
#include "ops/deform/dcn_window_reference.h"

namespace polyop {
namespace {

Status DcnV4BackwardReference(const DcnV4Backward& op, const Context&, Tensor<const double, 4> grad_output,
                              Tensor<const double, 4> input, Tensor<const double, 4> offset_mask,
                              std::optional<Tensor<double, 4>> grad_input,
                              std::optional<Tensor<double, 4>> grad_offset_mask) {
  if (grad_input) std::fill_n(grad_input->data(), grad_input->size(), 0.0);
  if (grad_offset_mask) std::fill_n(grad_offset_mask->data(), grad_offset_mask->size(), 0.0);
  const int64_t points = op.points();
  const auto group = [&](auto* data, int64_t pixel, int64_t g) {
    return data + pixel * offset_mask.dim(3) + g * 3 * points;
  };
  double* const to = grad_offset_mask ? grad_offset_mask->data() : nullptr;
  return reference::SumDcnWindowsBackward(
      op, grad_output, input,
      [&](int64_t pixel, int64_t g, int64_t p) { return group(offset_mask.data(), pixel, g) + 2 * p; },
      [&](int64_t pixel, int64_t g, int64_t p) { return group(offset_mask.data(), pixel, g) + 2 * points + p; },
      grad_input ? grad_input->data() : nullptr,
      [&](int64_t pixel, int64_t g, int64_t p) { return to != nullptr ? group(to, pixel, g) + 2 * p : nullptr; },
      [&](int64_t pixel, int64_t g, int64_t p) {
        return to != nullptr ? group(to, pixel, g) + 2 * points + p : nullptr;
      });
}
POLYOP_REFERENCE_KERNEL(DcnV4Backward, DcnV4BackwardReference);

}  // namespace
}  // namespace polyop
